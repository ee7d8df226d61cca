#include "gateway/door/chat_client.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/base/json_tree.h"
#include "gateway/door/chat_back.h"
#include "gateway/door/chat_drop.h"
#include "gateway/gateway.h"
#include "gateway/spine/client.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/facts.h"
#include "gateway/spine/owners.h"

#define PULL_MAX  256u /* messages in a turn of the loop */
#define LAG_MS	  10u
#define LOST_CODE 1011u

/* One run. The client is there from its beginning to its end. */
struct chat_client {
	struct gateway *gw;
	struct chat_run run;
	struct client *client;
	const struct desk *desk; /* as long as the client is there */
	char msg_id[UUID_SIZE], status[16];
	uint64_t peak_bytes;
	struct timer pull;
	uint64_t sent_ms, began_ms; /* began_ms 0: not yet */
	uint64_t epoch;
	bool revived;
	char lost[160];
	unsigned queue_position;
	bool ran, told, idle, closed; /* told: iopub had an error of it */
};

static void on_readable(void *data)
{
	struct chat_client *c = data;
	if (!timer_running(&c->pull))
		timer_start(c->gw->clock, &c->pull, 0);
}

/* 1011: something could not be put into the journal. A page connects anew and reads on; here the
 * rest is read as it comes, and that something is missing is said. */
static void on_close(void *data, unsigned code, const char *reason)
{
	struct chat_client *c = data;
	if (code == LOST_CODE)
		(void)copy_text(c->lost, sizeof c->lost, reason, strlen(reason)); /* cut is fine */
	else
		c->closed = true;
	on_readable(c);
}

/* Its session is its own: there is no other socket of it. */
static void on_replaced(void *data)
{
	(void)data;
}

static bool asked_exit(const struct chat_client *c)
{
	const struct execution *x = execution_find(c->desk, c->msg_id);
	return x && x->asked_exit;
}

/* Its reply is an error like any other, or even fine. */
static bool timed_out(const struct chat_client *c)
{
	const struct execution *x = execution_find(c->desk, c->msg_id);
	return x && x->status == EXECUTION_TIMED_OUT;
}

static void end(struct chat_client *c, const char *status)
{
	struct chat_run run = c->run;
	uint64_t now = clock_now_ms(c->gw->clock), began = c->began_ms ? c->began_ms : now;
	char word[sizeof c->status];
	struct chat_outcome outcome = {.status = word,
		.waited_ms = began - c->sent_ms,
		.ran_ms = now - began,
		.queue_position = c->queue_position,
		.peak_memory_bytes = c->peak_bytes,
		.epoch = c->epoch,
		.revived = c->revived,
		.leaves = asked_exit(c)};
	(void)copy_text(word, sizeof word, status, strlen(status)); /* one of ours, or as long */
	memcpy(outcome.lost, c->lost, sizeof outcome.lost);
	timer_stop(c->gw->clock, &c->pull);
	client_detach(c->client, 0);
	free(c);
	run.on_end(run.data, &outcome);
}

static void read_word(const struct jmsg *m, const char *key, char *ret, size_t size)
{
	struct json_want want = {.key = key};
	ret[0] = '\0';
	if (json_scan(m->part[PART_CONTENT], &want, 1, NULL) == 0)
		(void)json_text(want.value, ret, size); /* "" then */
}

/* What a magic did wrong is told by the reply alone (field case 17). */
static void take_reply(struct chat_client *c, const struct jmsg *m)
{
	read_word(m, "status", c->status, sizeof c->status);
	c->peak_bytes = facts_peak(m);
	if (strcmp(c->status, "error") == 0 && !c->told)
		c->run.on_message(c->run.data, "error", m->part[PART_CONTENT]);
}

static void take_published(struct chat_client *c, const struct jmsg *m)
{
	c->ran = true;
	c->told = c->told || strcmp(m->msg_type, "error") == 0;
	c->run.on_message(c->run.data, m->msg_type, m->part[PART_CONTENT]);
}

static void take(struct chat_client *c, const struct jmsg *m)
{
	char state[16];
	if (strcmp(m->parent_id, c->msg_id) != 0)
		return;
	if (c->began_ms == 0) {
		c->began_ms = clock_now_ms(c->gw->clock);
		c->epoch = c->desk->epoch;
		c->revived = c->desk->at.node[0] != '\0';
	}
	if (m->channel == CHANNEL_SHELL) {
		take_reply(c, m);
	} else if (strcmp(m->msg_type, "status") == 0) {
		read_word(m, "execution_state", state, sizeof state);
		c->idle = c->idle || strcmp(state, "idle") == 0;
	} else if (m->channel == CHANNEL_IOPUB) {
		take_published(c, m);
	}
}

/* A flood leaves the loop its turns, and waits in the journal while it cannot be taken. */
static void rest(struct chat_client *c)
{
	timer_start(c->gw->clock, &c->pull, c->run.lags(c->run.data) ? LAG_MS : 0);
}

/* Its reply or its idle may be what is missing: then the spine knows how it ended. NULL: it runs.
 */
static const char *ended_unheard(const struct chat_client *c)
{
	const struct execution *x = execution_find(c->desk, c->msg_id);
	if (client_waits(c->client) || (x && x->sm.state != EXECUTION_DONE))
		return NULL;
	return x ? execution_status_name(x->status) : "died";
}

static void on_pull(struct timer *t)
{
	struct chat_client *c = CONTAINER_OF(t, struct chat_client, pull);
	struct entry *e;
	unsigned taken = 0;
	while (!(c->idle && *c->status)) {
		if (taken++ == PULL_MAX || c->run.lags(c->run.data)) {
			rest(c);
			return;
		}
		if (client_next(c->client, &e) != 1)
			break;
		take(c, e->msg);
		entry_unref(e);
	}
	bool aborted = strcmp(c->status, "aborted") == 0;
	if (c->idle && *c->status && timed_out(c))
		end(c, execution_status_name(EXECUTION_TIMED_OUT));
	else if (c->idle && *c->status)
		end(c, aborted && c->ran ? "died" : c->status);
	else if (c->closed && !client_waits(c->client))
		end(c, "died");
	else if (*c->lost && ended_unheard(c))
		end(c, ended_unheard(c));
	else if (*c->lost)
		timer_start(c->gw->clock, &c->pull, LAG_MS);
}

static const struct owner *owner_of(const struct gateway *gw, const char *name)
{
	const struct owner *o = owners_next(gw->owners, NULL);
	while (o && strcmp(o->name, name) != 0)
		o = owners_next(gw->owners, o);
	return o;
}

int chat_client_find(struct gateway *gw, const char *owner, const char *kernel_id,
	struct desk **ret, struct err *err)
{
	const struct owner *o = owner_of(gw, owner);
	if (!o)
		return err_set(err, E_NOT_FOUND, "its owner is not known any more");
	return kernels_find(gw->kernels, o, kernel_id, ret, err);
}

static int start(void *data, const char *owner, const char *kernel_name, char ret_id[UUID_SIZE],
	struct err *err)
{
	struct gateway *gw = data;
	struct desk *d;
	const struct kernels_start what = {.owner = owner_of(gw, owner), .spec_name = kernel_name};
	if (!what.owner)
		return err_set(err, E_NOT_FOUND, "its owner is not known any more");
	int rc = kernels_start(gw->kernels, &what, &d, err);
	if (rc == 0)
		(void)copy_text(ret_id, UUID_SIZE, desk_id(d), strlen(desk_id(d))); /* a uuid */
	return rc;
}

static bool await_place(void *data, void (*cb)(void *data, const struct err *err), void *cb_data)
{
	const struct gateway *gw = data;
	if (!kernels_may_wait(gw->kernels))
		return false;
	kernels_await_place(gw->kernels, cb, cb_data);
	return true;
}

static char *content_of(const char *code, struct err *err)
{
	struct cJSON *tree = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(tree, "code", code);
	(void)cJSON_AddBoolToObject(tree, "silent", false);
	(void)cJSON_AddBoolToObject(tree, "store_history", true);
	(void)cJSON_AddBoolToObject(tree, "allow_stdin", false);
	(void)cJSON_AddBoolToObject(tree, "stop_on_error", true);
	(void)cJSON_AddObjectToObject(tree, "user_expressions");
	char *text = json_print(tree, err);
	cJSON_Delete(tree);
	return text;
}

/* History and limits.c read it (docs/PROTOCOL.md). */
static int add_metadata(struct jmsg **m, const struct chat_run *run, struct err *err)
{
	AUTO(jmsg_unrefp) struct jmsg *plain = TAKE(*m);
	char metadata[160], timeout[48] = "";
	if (run->timeout_s > 0)
		(void)snprintf(timeout, sizeof timeout, ",\"timeout\":%.3f", run->timeout_s);
	/* Both fit: a uuid, a number below 1e9. */
	int len = snprintf(metadata, sizeof metadata, "{\"coppice\":{\"retry_of\":%s%s%s%s}}",
		run->retry_of ? "\"" : "", run->retry_of ? run->retry_of : "null",
		run->retry_of ? "\"" : "", timeout);
	struct jmsg_source source = {.channel = plain->channel};
	memcpy(source.part, plain->part, sizeof source.part);
	source.part[PART_METADATA] = (struct bytes){(const uint8_t *)metadata, (size_t)len};
	return jmsg_new(&source, false, m, err);
}

static int send_code(struct chat_client *c, const struct chat_run *run, struct err *err)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct err why;
	AUTO(freep) char *content = content_of(run->code, &why);
	if (!content)
		return err_set(err, why.code, "a request: %s", why.text);
	int rc = jmsg_make(CHANNEL_SHELL, "execute_request", client_session_id(c->client), NULL,
		content, &m, err);
	if (rc == 0 && (run->retry_of || run->timeout_s > 0))
		rc = add_metadata(&m, run, err);
	if (rc != 0)
		return rc;
	(void)copy_text(c->msg_id, sizeof c->msg_id, m->msg_id, strlen(m->msg_id)); /* a uuid */
	return client_receive(c->client, m, err);
}

static int run(void *data, const char *owner, const char *kernel_id, const struct chat_run *run_it,
	char ret_msg_id[UUID_SIZE], struct err *err)
{
	struct gateway *gw = data;
	struct desk *d;
	int rc = chat_client_find(gw, owner, kernel_id, &d, err);
	if (rc != 0)
		return rc;
	struct chat_client *c = xcalloc(1, sizeof *c);
	c->gw = gw;
	c->run = *run_it;
	c->desk = d;
	c->sent_ms = clock_now_ms(gw->clock);
	timer_init(&c->pull, on_pull);
	const struct client_socket side = {.on_readable = on_readable,
		.on_close = on_close,
		.on_replaced = on_replaced,
		.data = c};
	rc = client_attach(d, NULL, &side, &c->client, err);
	if (rc != 0) {
		timer_stop(gw->clock, &c->pull);
		free(c);
		return rc == E_DEAD ? err_set(err, E_GONE, "the kernel is dead") : rc;
	}
	rc = send_code(c, run_it, err);
	if (rc == 0) {
		const struct execution *x = execution_find(d, c->msg_id);
		c->queue_position = x ? x->queue_position : 0;
		memcpy(ret_msg_id, c->msg_id, sizeof c->msg_id);
		return 0;
	}
	timer_stop(gw->clock, &c->pull);
	client_detach(c->client, 0);
	free(c);
	return rc;
}

static void on_interrupted(void *data, const struct err *err)
{
	(void)data, (void)err; /* what became of it shows in the run's end */
}

static void interrupt(void *data, const char *owner, const char *kernel_id)
{
	struct desk *d;
	if (chat_client_find(data, owner, kernel_id, &d, NULL) == 0)
		desk_interrupt(d, on_interrupted, NULL);
}

const struct chat_runner chat_client_runner = {.start = start,
	.await_place = await_place,
	.run = run,
	.interrupt = interrupt,
	.back = chat_back,
	.drop = chat_drop};
