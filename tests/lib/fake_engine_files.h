/* A part of fake_engine.c, which includes it: working files. */
#ifndef COPPICE_FAKE_ENGINE_FILES_H
#define COPPICE_FAKE_ENGINE_FILES_H

static bool fake_has_files(struct slot *slot)
{
	return engine_of(slot)->has_files;
}

static int say_files(struct slot *slot, struct err *err, const char *format, ...)
{
	struct fake_engine *e = engine_of(slot);
	va_list args;

	if (faulty(e, err))
		return E_UNAVAILABLE;
	va_start(args, format);
	vsnprintf(e->said, sizeof(e->said), format, args); /* may be cut */
	va_end(args);
	return 0;
}

static int fake_want(
	struct slot *slot, unsigned line, const struct kernel_want *want, struct err *err)
{
	return say_files(slot, err, "want %u %s %zu %s %d", line, want->msg_id, want->n,
		want->n > 0 ? want->names[0] : "-", want->last);
}

static int fake_scan(struct slot *slot, unsigned line, const char *id, bool full, struct err *err)
{
	return say_files(slot, err, "scan %u %s%s", line, id, full ? " full" : "");
}

static int fake_lay(struct slot *slot, const char *id, const char *folder, struct bytes entries,
	struct err *err)
{
	return say_files(slot, err, "%s lay %s %.*s", id, folder, (int)entries.len,
		(const char *)entries.data);
}

static int fake_lay_content(
	struct slot *slot, const char *id, const char *name, struct bytes bytes, struct err *err)
{
	return say_files(slot, err, "%s %s=%.*s", id, name, (int)bytes.len,
		bytes.data ? (const char *)bytes.data : "");
}

static void fake_lay_end(struct slot *slot, const char *id, bool keep)
{
	struct err err;

	(void)say_files(slot, &err, "%s end %d", id, keep); /* best effort */
}

static const struct slot_files_ops fake_files_ops = {
	.has = fake_has_files,
	.want = fake_want,
	.scan = fake_scan,
	.lay = fake_lay,
	.lay_content = fake_lay_content,
	.lay_end = fake_lay_end,
};

void fake_engine_files(struct fake_engine *e, unsigned line, const char *msg_id, const char *text)
{
	const struct slot_watcher *w = &e->slot->slot.watcher;

	w->files->on_files(
		w->data, line, msg_id, (struct bytes){(const uint8_t *)text, strlen(text)});
}

void fake_engine_content(struct fake_engine *e, const char *name, const char *text)
{
	const struct slot_watcher *w = &e->slot->slot.watcher;

	w->files->on_content(
		w->data, name, (struct bytes){(const uint8_t *)text, text ? strlen(text) : 0});
}

void fake_engine_laid(
	struct fake_engine *e, const char *id, const struct cJSON *names, const char *reason)
{
	const struct slot_watcher *w = &e->slot->slot.watcher;
	const struct slot_laid laid = {.id = id,
		.ready = !names && !reason,
		.reason = reason,
		.names = names,
		.last = true};

	w->files->on_laid(w->data, &laid);
}

void fake_engine_room(struct fake_engine *e)
{
	const struct slot_watcher *w = &e->slot->slot.watcher;

	w->files->on_room(w->data);
}

#endif
