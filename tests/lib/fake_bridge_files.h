/* A part of fake_bridge.c, which includes it: working files. */
#ifndef COPPICE_FAKE_BRIDGE_FILES_H
#define COPPICE_FAKE_BRIDGE_FILES_H

void fake_bridge_files(struct bridge *b)
{
	b->has_files = true;
}

void fake_kernel_files_on(struct kernel *k)
{
	k->has_files = true;
}

void fake_kernel_files(struct kernel *k, const char *msg_id, const char *change)
{
	k->watcher.on_files(
		k->watcher.data, msg_id, (struct bytes){(const uint8_t *)change, strlen(change)});
}

void fake_kernel_content(struct kernel *k, const char *name, const char *content)
{
	k->watcher.on_content(k->watcher.data, name,
		(struct bytes){(const uint8_t *)content, content ? strlen(content) : 0});
}

const char *fake_kernel_wants(const struct kernel *k)
{
	return k->wants;
}

const char *fake_kernel_scans(const struct kernel *k)
{
	return k->scans;
}

bool fake_kernel_scans_all(const struct kernel *k)
{
	return k->scans_all;
}

void fake_kernel_moves_house(struct kernel *k)
{
	k->place = ++k->bridge->places;
}

bool kernel_has_files(const struct kernel *k)
{
	return k->has_files;
}

uint64_t kernel_place(const struct kernel *k)
{
	return k->place;
}

static int refuse(struct kernel *k, struct err *err)
{
	assert(!k->ending && k->has_files);
	return fault_hit(k->bridge) ? err_set(err, E_UNAVAILABLE, "a fault of the test") : 0;
}

int kernel_want(struct kernel *k, const struct kernel_want *want, struct err *err)
{
	int rc = refuse(k, err);
	assert(want->n <= FILES_WANT_MAX);
	k->wants[0] = '\0';
	for (size_t i = 0; rc == 0 && i < want->n; i++) {
		size_t len = strlen(k->wants);
		(void)snprintf(k->wants + len, sizeof k->wants - len, "%s%s", i > 0 ? " " : "",
			want->names[i]); /* may be cut */
	}
	if (rc == 0 && want->last)
		(void)strncat(k->wants, want->n > 0 ? " last" : "last",
			sizeof k->wants - strlen(k->wants) - 1);
	return rc;
}

int kernel_scan(struct kernel *k, const char *id, bool full, struct err *err)
{
	int rc = refuse(k, err);
	(void)snprintf(k->scans, sizeof k->scans, "%s", rc == 0 ? id : "");
	k->scans_all = rc == 0 && full;
	return rc;
}

int kernel_lay(struct kernel *k, const struct kernel_lay *lay, struct err *err)
{
	int rc = refuse(k, err);
	assert(!k->lay.on_laid);
	if (rc != 0)
		return rc;
	free(k->lays);
	k->lay = *lay;
	k->lays = strndup((const char *)lay->entries.data, lay->entries.len);
	k->given[0] = '\0';
	k->lay_ended = "";
	return 0;
}

int kernel_lay_content(struct kernel *k, const char *name, struct bytes bytes, struct err *err)
{
	size_t len = strlen(k->given);
	assert(k->lay.on_laid);
	(void)snprintf(k->given + len, sizeof k->given - len, "%s=%.*s ", name,
		bytes.data ? (int)bytes.len : 4,
		bytes.data ? (const char *)bytes.data : "none"); /* may be cut */
	return refuse(k, err);
}

void kernel_lay_end(struct kernel *k, bool keep)
{
	assert(!k->ending);
	if (k->lay.on_laid)
		k->lay_ended = keep ? "kept" : "put back";
	k->lay.on_laid = NULL;
}

const char *fake_kernel_lays(const struct kernel *k)
{
	return k->lay.on_laid ? k->lays : NULL;
}

void fake_kernel_needs(struct kernel *k, const char *names_json, bool last)
{
	cJSON *names = cJSON_Parse(names_json);
	k->lay.on_needs(k->lay.data, names, last);
	cJSON_Delete(names);
}

const char *fake_kernel_given(const struct kernel *k)
{
	return k->given;
}

void fake_kernel_room(struct kernel *k)
{
	k->lay.on_room(k->lay.data);
}

void fake_kernel_laid(struct kernel *k, const char *reason)
{
	struct err err;
	err_set(&err, E_UNAVAILABLE, "%s", reason ? reason : "");
	k->lay.on_laid(k->lay.data, reason ? &err : NULL);
}

const char *fake_kernel_lay_ended(const struct kernel *k)
{
	return k->lay_ended;
}

#endif
