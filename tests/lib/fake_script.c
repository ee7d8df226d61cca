/* The scripted kernels of fake_engine.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "kernel-bridge/wire.h"
#include "tests/lib/fake_engine.h"

static void *bind_socket(struct script_kernel *k, struct fake_engine *e, enum channel c)
{
	static const int zero = 0;
	static const int one = 1;
	static const int linger_ms = 60000; /* what was sent before the end arrives */
	char *address = k->endpoints.address[c];
	void *s = zmq_socket(e->zmq, c == CHANNEL_IOPUB ? ZMQ_PUB : ZMQ_ROUTER);

	zmq_setsockopt(s, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
	zmq_setsockopt(s, ZMQ_SNDHWM, &zero, sizeof(zero));
	if (c != CHANNEL_IOPUB) /* as ipykernel: who comes back with the same id is the one */
		zmq_setsockopt(s, ZMQ_ROUTER_HANDOVER, &one, sizeof(one));
	if (k->script.curve) {
		zmq_setsockopt(s, ZMQ_CURVE_SERVER, &one, sizeof(one));
		zmq_setsockopt(s, ZMQ_CURVE_SECRETKEY, k->endpoints.curve_secret, 41);
	}
	snprintf(address, ENDPOINT_SIZE, "ipc://%s/%u-%s", e->dir, e->serial, channel_name(c));
	if (!(c == CHANNEL_STDIN && k->script.deaf_stdin) && zmq_bind(s, address) < 0)
		abort();
	return s;
}

void script_listen_stdin(struct script_kernel *k)
{
	if (zmq_bind(k->socket[CHANNEL_STDIN], k->endpoints.address[CHANNEL_STDIN]) < 0)
		abort();
}

struct script_kernel *script_new(struct fake_engine *e, unsigned line, const char *key)
{
	struct script_kernel *k = xcalloc(1, sizeof(*k));
	struct err err;

	k->script = e->script;
	k->line = line;
	if (k->script.curve &&
		zmq_curve_keypair(k->endpoints.curve_public, k->endpoints.curve_secret) < 0)
		abort();
	e->serial++;
	for (int c = 0; c < CHANNEL_COUNT; c++)
		k->socket[c] = bind_socket(k, e, (enum channel)c);
	snprintf(k->endpoints.key, sizeof(k->endpoints.key), "%s", key);
	k->endpoints.trusted_hwm = !e->script.foreign;
	if (sign_init(&k->sign, key, &err) < 0)
		abort();
	return k;
}

void script_free(struct script_kernel *k)
{
	if (!k)
		return;
	for (int c = 0; c < CHANNEL_COUNT; c++) {
		if (k->socket[c])
			zmq_close(k->socket[c]);
		jmsg_unref(k->last[c]);
	}
	sign_done(&k->sign);
	free(k);
}

void script_send_raw(
	struct script_kernel *k, enum channel channel, const struct bytes *frames, size_t n)
{
	const char *ident = channel == CHANNEL_IOPUB ? "topic" : k->last_ident[channel];

	zmq_send(k->socket[channel], ident, strlen(ident), ZMQ_SNDMORE);
	for (size_t i = 0; i < n; i++)
		zmq_send(k->socket[channel], frames[i].data, frames[i].len,
			i + 1 < n ? ZMQ_SNDMORE : 0);
}

void script_send(struct script_kernel *k, enum channel channel, const char *msg_type,
	const struct jmsg *parent, const char *content)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct wire_head head;
	struct err err;

	if (jmsg_make(channel, msg_type, "kernel-session", parent, content, &m, &err) < 0)
		abort();
	wire_encode(&k->sign, m, &head);
	script_send_raw(k, channel, head.frames, WIRE_HEAD);
}

static void answer_info(struct script_kernel *k, enum channel c, const struct jmsg *request)
{
	k->infos++;
	if (k->script.mute || (c == CHANNEL_CONTROL && k->script.mute_control))
		return;
	if (!k->script.deaf_iopub)
		script_send(k, CHANNEL_IOPUB, "status", request, "{\"execution_state\":\"busy\"}");
	script_send(k, c, "kernel_info_reply", request, "{\"status\":\"ok\"}");
	if (!k->script.deaf_iopub)
		script_send(k, CHANNEL_IOPUB, "status", request, "{\"execution_state\":\"idle\"}");
}

static void take(struct script_kernel *k, enum channel c, struct jmsg *m)
{
	if (strcmp(m->msg_type, "kernel_info_request") == 0) {
		answer_info(k, c, m);
		return;
	}
	jmsg_unref(k->last[c]);
	k->last[c] = jmsg_ref(m);
	k->requests[c]++;
	if (strcmp(m->msg_type, "shutdown_request") == 0 && !k->script.rude)
		k->wants_exit = true;
	if (strcmp(m->msg_type, "interrupt_request") == 0 && !k->script.ignores_interrupt)
		script_send(k, c, "interrupt_reply", m, "{\"status\":\"ok\"}");
}

#define PARTS_MAX 64
static bool step_channel(struct script_kernel *k, enum channel c)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct bytes frames[PARTS_MAX];
	zmq_msg_t parts[PARTS_MAX];
	struct err err;
	size_t n = 0;
	bool more = true;

	while (more && n < PARTS_MAX) {
		zmq_msg_init(&parts[n]);
		if (zmq_msg_recv(&parts[n], k->socket[c], ZMQ_DONTWAIT) < 0)
			return false;
		more = zmq_msg_more(&parts[n]);
		frames[n] = (struct bytes){zmq_msg_data(&parts[n]), zmq_msg_size(&parts[n])};
		n++;
	}
	snprintf(k->last_ident[c], sizeof(k->last_ident[c]), "%.*s", (int)frames[0].len,
		(const char *)frames[0].data);
	if (c == CHANNEL_HB) {
		k->beats++;
	} else {
		if (wire_decode(&k->sign, c, frames, n, &m, &err) < 0)
			abort();
		take(k, c, m);
	}
	while (n > 0)
		zmq_msg_close(&parts[--n]);
	return true;
}

bool script_step(struct script_kernel *k)
{
	static const enum channel order[] = {
		CHANNEL_CONTROL, CHANNEL_SHELL, CHANNEL_STDIN, CHANNEL_HB};
	bool any = false;

	for (size_t i = 0; k && i < ARRAY_LEN(order); i++)
		while (step_channel(k, order[i]))
			any = true;
	return any;
}
