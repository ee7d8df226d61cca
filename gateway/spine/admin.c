#include "gateway/spine/admin.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/buf.h"
#include "gateway/spine/client.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/sessions.h"

static struct desk *desk_of(struct list *at)
{
	return CONTAINER_OF(at, struct desk, link);
}

static void add_number(cJSON *row, const char *name, uint64_t value)
{
	cJSON_AddNumberToObject(row, name, (double)value);
}

static void add_time(cJSON *row, const char *name, int64_t wall_us)
{
	char stamp[CLOCK_STAMP_SIZE];
	clock_stamp(wall_us, stamp);
	if (wall_us > 0)
		cJSON_AddStringToObject(row, name, stamp);
	else
		cJSON_AddNullToObject(row, name);
}

static cJSON *kernel_row(const struct desk *d)
{
	struct journal_figures figures;
	journal_figures(d->journal, &figures);
	cJSON *row = desk_model(d);
	cJSON_AddStringToObject(row, "owner", d->owner->name);
	cJSON_AddStringToObject(row, "path", d->path ? d->path : "");
	cJSON_AddBoolToObject(row, "open", d->open);
	cJSON_AddBoolToObject(row, "held", d->held);
	add_number(row, "deaths", d->deaths);
	add_number(row, "requests", d->requests.n);
	add_number(row, "requests_bytes", d->requests.bytes);
	add_number(row, "journal_entries", figures.entries);
	add_number(row, "journal_first", journal_first(d->journal));
	add_number(row, "journal_memory_bytes", figures.memory_bytes);
	add_number(row, "journal_unwritten_bytes", figures.unwritten_bytes);
	add_number(row, "journal_disk_bytes", figures.disk_bytes);
	cJSON_AddBoolToObject(row, "journal_failed", figures.failed);
	return row;
}

static cJSON *show_kernels(const struct gateway *gw)
{
	cJSON *rows = cJSON_CreateArray();
	LIST_EACH (at, &gw->kernels->desks)
		cJSON_AddItemToArray(rows, kernel_row(desk_of(at)));
	return rows;
}

static cJSON *execution_row(const struct desk *d, const struct execution *x)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddStringToObject(row, "msg_id", x->msg_id);
	cJSON_AddStringToObject(row, "kernel", d->id);
	cJSON_AddStringToObject(row, "state", sm_name(&x->sm));
	cJSON_AddStringToObject(row, "status", execution_status_name(x->status));
	add_number(row, "client", x->client);
	cJSON_AddNumberToObject(row, "execution_count", (double)x->execution_count);
	add_number(row, "queue_position", x->queue_position);
	add_number(row, "first", x->first);
	add_number(row, "last", x->last);
	add_time(row, "accepted", x->accepted_us);
	add_time(row, "sent", x->sent_us);
	add_time(row, "running", x->running_us);
	add_time(row, "done", x->done_us);
	cJSON_AddBoolToObject(row, "asked_exit", x->asked_exit);
	cJSON_AddBoolToObject(row, "half_missing", x->silent_kernel);
	return row;
}

static cJSON *show_executions(const struct gateway *gw)
{
	cJSON *rows = cJSON_CreateArray();
	LIST_EACH (at, &gw->kernels->desks) {
		const struct desk *d = desk_of(at);
		LIST_EACH (of, &d->executions)
			cJSON_AddItemToArray(
				rows, execution_row(d, CONTAINER_OF(of, struct execution, link)));
	}
	return rows;
}

static cJSON *show_clients(const struct gateway *gw)
{
	cJSON *rows = cJSON_CreateArray();
	LIST_EACH (at, &gw->kernels->desks)
		clients_show(desk_of(at), rows);
	return rows;
}

static cJSON *show_slots(const struct gateway *gw)
{
	cJSON *rows = cJSON_CreateArray();
	LIST_EACH (at, &gw->kernels->desks) {
		cJSON *row = desk_of(at)->kernel ? kernel_report(desk_of(at)->kernel) : NULL;
		if (!row)
			continue;
		if (!cJSON_HasObjectItem(row, "kernel"))
			cJSON_AddStringToObject(row, "kernel", desk_of(at)->id);
		cJSON_AddItemToArray(rows, row);
	}
	return rows;
}

static cJSON *show_pool(const struct gateway *gw)
{
	cJSON *row = pool_show(gw->kernels->pool);
	add_number(row, "places", kernels_places(gw->kernels));
	add_number(row, "owned", gw->kernels->n_alive);
	add_number(row, "waiting", gw->kernels->waiting.n);
	add_number(row, "waited", gw->kernels->waiting.served);
	add_number(row, "refused", gw->kernels->waiting.refused);
	return row;
}

static cJSON *show_sessions(const struct gateway *gw)
{
	cJSON *rows = cJSON_CreateArray();
	LIST_EACH (at, &gw->kernels->desks) {
		const struct desk *d = desk_of(at);
		cJSON *of_owner = NULL, *row = NULL;
		bool seen = false;
		for (struct list *b = gw->kernels->desks.next; b != at && !seen; b = b->next)
			seen = desk_of(b)->owner == d->owner;
		if (seen || !gw->sessions)
			continue;
		of_owner = sessions_list(gw->sessions, d->owner);
		while ((row = cJSON_DetachItemFromArray(of_owner, 0))) {
			cJSON_AddStringToObject(row, "owner", d->owner->name);
			cJSON_AddItemToArray(rows, row);
		}
		cJSON_Delete(of_owner);
	}
	return rows;
}

static void add_option_text(cJSON *row, const char *name, const char *value)
{
	cJSON_AddStringToObject(row, name, value ? value : "");
}

#define ADD_TEXT(row, name, value)     add_option_text(row, name, value)
#define ADD_LIST(row, name, value)     add_option_text(row, name, value)
#define ADD_FLAG(row, name, value)     cJSON_AddBoolToObject(row, name, value)
#define ADD_COUNT(row, name, value)    cJSON_AddNumberToObject(row, name, (double)(value))
#define ADD_BYTES(row, name, value)    cJSON_AddNumberToObject(row, name, (double)(value))
#define ADD_DURATION(row, name, value) cJSON_AddNumberToObject(row, name, (double)(value))
#define ADD_DECIMAL(row, name, value)  cJSON_AddNumberToObject(row, name, value)

/* Options hold paths of secrets, never secrets. */
static cJSON *show_config(const struct gateway *gw)
{
	cJSON *row = cJSON_CreateObject();
#define OPTION(name, type, ...) ADD_##type(row, #name, gw->config.name);
#include "gateway/base/options.def"
#undef OPTION
	return row;
}

static cJSON *show_engine(const struct gateway *gw)
{
	return bridge_report(gw->bridge);
}

static cJSON *show_counters(const struct gateway *gw)
{
	const struct spine_counters *c = &gw->kernels->count;
	cJSON *row = cJSON_CreateObject();
	add_number(row, "messages_in", c->messages_in);
	add_number(row, "bytes_in", c->bytes_in);
	add_number(row, "messages_out", c->messages_out);
	add_number(row, "bytes_out", c->bytes_out);
	add_number(row, "bad_messages", c->bad_messages);
	add_number(row, "refused", c->refused);
	add_number(row, "duplicates", c->duplicates);
	add_number(row, "synthesised", c->synthesised);
	add_number(row, "deaths", c->deaths);
	add_number(row, "restarts", c->restarts);
	add_number(row, "culled", c->culled);
	add_number(row, "missed", c->missed);
	add_number(row, "recorded", c->recorded);
	add_number(row, "not_recorded", c->not_recorded);
	add_number(row, "unrecorded", gw->kernels->n_unrecorded);
	cJSON *executions = cJSON_AddObjectToObject(row, "executions");
	for (unsigned i = EXECUTION_OK; i < EXECUTION_STATUSES; i++)
		add_number(executions, execution_status_name(i), c->executions[i]);
	return row;
}

struct cJSON *admin_show(const struct gateway *gw, const char *what)
{
	static const struct {
		const char *name;
		cJSON *(*show)(const struct gateway *gw);
	} views[] = {
		{"kernels", show_kernels},
		{"executions", show_executions},
		{"clients", show_clients},
		{"slots", show_slots},
		{"pool", show_pool},
		{"sessions", show_sessions},
		{"engine", show_engine},
		{"config", show_config},
		{"counters", show_counters},
	};
	for (size_t i = 0; i < ARRAY_LEN(views); i++) {
		if (strcmp(views[i].name, what) == 0)
			return views[i].show(gw);
	}
	return NULL;
}
