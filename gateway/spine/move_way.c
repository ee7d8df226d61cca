/* Where a move leads, by what history says of the way, and whether it can be gone. */
#include "gateway/spine/move_internal.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/spine/move_text.h"

static const char *text_of(const cJSON *o, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
	return text ? text : "";
}

static void park_free(struct parked *p)
{
	if (!p)
		return;
	free(p->msg_id);
	free(p->text);
	free(p);
}

static struct parked *park_copy(const struct parked *p)
{
	struct parked *copy = xcalloc(1, sizeof *copy);
	*copy = *p;
	copy->msg_id = xstrdup(p->msg_id);
	copy->text = xstrdup(p->text);
	return copy;
}

static int set_target(struct move *m)
{
	struct desk *d = m->desk;
	const cJSON *branch = cJSON_GetObjectItemCaseSensitive(m->way, "branch");
	const cJSON *goes_on = cJSON_GetObjectItemCaseSensitive(m->way, "goes_on");
	const char *id = text_of(cJSON_GetObjectItemCaseSensitive(m->way, "node"), "id");
	const char *name =
		m->branch && !cJSON_IsTrue(goes_on) ? m->branch : cJSON_GetStringValue(branch);
	m->to.version = d->scribe.state_version + 1;
	return name && copy_text(m->to.node, sizeof m->to.node, id, strlen(id)) &&
			       copy_text(m->to.branch, sizeof m->to.branch, name, strlen(name))
		       ? 0
		       : E_INVALID;
}

int way_look(struct move *m, struct err *err)
{
	struct desk *d = m->desk;
	const cJSON *version = cJSON_GetObjectItemCaseSensitive(m->way, "state_version");
	struct parks_found found = {0};
	uint64_t recorded = cJSON_IsNumber(version) ? (uint64_t)version->valuedouble : 0;
	if (d->scribe.state_version < recorded) /* an earlier gateway's */
		d->scribe.state_version = recorded;
	if (m->known_version >= 0 && (uint64_t)m->known_version != d->scribe.state_version)
		return err_set(err, E_STALE, "the kernel has moved on: its state_version is %llu",
			(unsigned long long)d->scribe.state_version);
	int rc = parks_find_way(d->kernels, d->owner, d, m->way, &found, err);
	if (rc != 0) {
		m->report = TAKE(found.report);
		return rc;
	}
	if (set_target(m) != 0)
		return err_set(err, E_INVALID, "what history answered makes no sense");
	m->park = park_copy(found.park);
	m->report = report_new(FIDELITY_EXACT);
	report_add_lost(
		m->report, (struct bytes){(const uint8_t *)m->park->text, strlen(m->park->text)});
	if (report_fidelity(m->report) > m->accept)
		return err_set(err, E_PARTIAL, "less than %s would come back: see the report",
			fidelity_name(m->accept));
	return 0;
}

void way_drop(struct move *m)
{
	cJSON_Delete(TAKE(m->way));
	cJSON_Delete(TAKE(m->report));
	park_free(TAKE(m->park));
}
