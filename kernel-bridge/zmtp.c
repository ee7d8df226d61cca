#include "kernel-bridge/zmtp.h"

#include <assert.h>
#include <string.h>

#define GREETING_SIZE  64
#define MECHANISM_AT   12
#define MECHANISM_SIZE 20
#define COMMAND_MAX    65536

enum { FLAG_MORE = 1, FLAG_LONG = 2, FLAG_COMMAND = 4, FLAGS = 7 };

struct head {
	uint8_t flags;
	size_t size;
	uint64_t len; /* of what follows */
};

/* ---- to the peer ---- */

size_t zmtp_frame_head(size_t len, bool more, uint8_t ret[ZMTP_HEAD_MAX])
{
	ret[0] = more ? FLAG_MORE : 0;
	if (len < 256) {
		ret[1] = (uint8_t)len;
		return 2;
	}
	ret[0] |= FLAG_LONG;
	for (unsigned i = 0; i < 8; i++)
		ret[1 + i] = (uint8_t)((uint64_t)len >> (56 - 8 * i));
	return ZMTP_HEAD_MAX;
}

static uint8_t *put(uint8_t *at, const void *data, size_t len)
{
	memcpy(at, data, len);
	return at + len;
}

static uint8_t *put_property(uint8_t *at, const char *name, const char *value)
{
	size_t len = strlen(value);
	const uint8_t size[] = {0, 0, 0, (uint8_t)len};

	*at++ = (uint8_t)strlen(name);
	at = put(at, name, strlen(name));
	at = put(at, size, sizeof(size));
	return put(at, value, len);
}

/* Version 3.0, as clients of 2013 spoke it and every peer since does: subscriptions are messages
 * and nobody sends heartbeats. */
size_t zmtp_hello(const char *socket_type, const char *routing_id, uint8_t ret[ZMTP_HELLO_MAX])
{
	static const uint8_t start[] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0};
	uint8_t *command = ret + GREETING_SIZE;
	uint8_t *at = command + 2;

	assert(!routing_id || strlen(routing_id) <= 64);
	memset(ret, 0, GREETING_SIZE);
	memcpy(ret, start, sizeof(start));
	memcpy(ret + MECHANISM_AT, "NULL", 4);
	at = put(at, "\5READY", 6);
	at = put_property(at, "Socket-Type", socket_type);
	at = put_property(at, "Identity", routing_id ? routing_id : "");
	command[0] = FLAG_COMMAND;
	command[1] = (uint8_t)(at - command - 2);
	return (size_t)(at - ret);
}

/* ---- from the peer ---- */

/* 1: it is there; 0: not yet. */
static int read_head(struct bytes data, struct head *ret, struct err *err)
{
	if (data.len < 2)
		return 0;
	*ret = (struct head){.flags = data.data[0], .size = 2, .len = data.data[1]};
	if (ret->flags & ~FLAGS || (ret->flags & FLAG_COMMAND && ret->flags & FLAG_MORE))
		return err_set(err, E_PROTOCOL, "a frame with flags %#x", ret->flags);
	if (!(ret->flags & FLAG_LONG))
		return 1;
	if (data.len < ZMTP_HEAD_MAX)
		return 0;
	ret->size = ZMTP_HEAD_MAX;
	ret->len = 0;
	for (unsigned i = 1; i <= 8; i++)
		ret->len = ret->len << 8 | data.data[i];
	if (ret->len > INT64_MAX)
		return err_set(err, E_PROTOCOL, "a frame that claims a length below zero");
	return 1;
}

static int check_head(const struct zmtp *z, const struct head *h, struct err *err)
{
	if (h->flags & FLAG_COMMAND && h->len > COMMAND_MAX)
		return err_set(
			err, E_PROTOCOL, "a command of %llu bytes", (unsigned long long)h->len);
	if (z->frame_max > 0 && h->len > z->frame_max)
		return err_set(err, E_TOO_BIG, "a frame of %llu bytes", (unsigned long long)h->len);
	return 0;
}

static struct bytes behind(struct bytes data, size_t at)
{
	return (struct bytes){data.data + at, data.len - at};
}

static int wait_for(struct zmtp_step *step, size_t used, size_t end)
{
	step->what = ZMTP_WAIT;
	step->used = used;
	step->need = end - used;
	return 0;
}

static int take_greeting(struct zmtp *z, struct bytes data, struct zmtp_step *step, struct err *err)
{
	static const char null[MECHANISM_SIZE] = "NULL";
	const uint8_t *d = data.data;

	if ((data.len >= 1 && d[0] != 0xff) || (data.len >= 10 && !(d[9] & 1)) ||
		(data.len >= 11 && d[10] < 3))
		return err_set(err, E_PROTOCOL, "no greeting of ZMTP 3");
	if (data.len < GREETING_SIZE)
		return wait_for(step, 0, GREETING_SIZE);
	if (memcmp(d + MECHANISM_AT, null, sizeof(null)) != 0)
		return err_set(err, E_PROTOCOL, "a peer that wants another mechanism than NULL");
	z->state = ZMTP_HANDSHAKE;
	return wait_for(step, GREETING_SIZE, GREETING_SIZE + 2);
}

static int take_ready(struct zmtp *z, struct bytes data, struct zmtp_step *step, struct err *err)
{
	static const char ready[] = "\5READY";
	struct head h;
	int rc = read_head(data, &h, err);

	if (rc == 0)
		return wait_for(step, 0, data.len + 1);
	if (rc == 1)
		rc = check_head(z, &h, err);
	if (rc < 0)
		return rc;
	if (data.len - h.size < h.len)
		return wait_for(step, 0, h.size + (size_t)h.len);
	if (!(h.flags & FLAG_COMMAND) || h.len < sizeof(ready) - 1 ||
		memcmp(data.data + h.size, ready, sizeof(ready) - 1) != 0)
		return err_set(err, E_PROTOCOL, "a peer that does not become ready");
	z->state = ZMTP_TRAFFIC;
	step->what = ZMTP_UP;
	step->used = h.size + (size_t)h.len;
	return 0;
}

/* Goes over the frames of a message up to its last one, however they are cut. */
static int drop(struct zmtp *z, struct bytes data, struct zmtp_step *step, struct err *err)
{
	struct head h;
	size_t at = 0;

	while (true) {
		size_t left = data.len - at, n = z->skip < left ? (size_t)z->skip : left;

		at += n;
		z->skip -= n;
		if (z->skip > 0)
			return wait_for(step, at, at + 1);
		if (z->last)
			break;
		int rc = read_head(behind(data, at), &h, err);
		if (rc == 0)
			return wait_for(step, at, data.len + 1);
		if (rc == 1)
			rc = check_head(z, &h, err);
		if (rc < 0)
			return rc;
		if (h.flags & FLAG_COMMAND)
			return err_set(err, E_PROTOCOL, "a command amid a message");
		at += h.size;
		z->skip = h.len;
		z->last = !(h.flags & FLAG_MORE);
	}
	z->dropping = false;
	step->what = ZMTP_DROPPED;
	step->used = at;
	return 0;
}

static int start_drop(
	struct zmtp *z, struct bytes data, size_t from, struct zmtp_step *step, struct err *err)
{
	int rc;

	z->dropping = true;
	z->last = false;
	z->skip = 0;
	rc = drop(z, behind(data, from), step, err);
	step->used += from;
	return rc;
}

/* A command between messages means nothing to a client of 3.0. */
static int take_message(struct zmtp *z, struct bytes data, struct zmtp_step *step, struct err *err)
{
	size_t at = 0, from = 0, total = 0;
	struct head h;

	step->n = 0;
	while (true) {
		int rc = read_head(behind(data, at), &h, err);

		if (rc == 0)
			return wait_for(step, from, data.len + 1);
		if (rc == 1)
			rc = check_head(z, &h, err);
		if (rc < 0)
			return rc;
		if (h.flags & FLAG_COMMAND && at > from)
			return err_set(err, E_PROTOCOL, "a command amid a message");
		bool command = h.flags & FLAG_COMMAND;
		bool fits = h.len <= step->total_max - total && step->n < step->frames_max;
		if (!command && !fits)
			return start_drop(z, data, from, step, err);
		if (data.len - at - h.size < h.len)
			return wait_for(step, from, at + h.size + (size_t)h.len);
		if (!command)
			step->frames[step->n++] =
				(struct bytes){data.data + at + h.size, (size_t)h.len};
		at += h.size + (size_t)h.len;
		total += command ? 0 : (size_t)h.len;
		if (command)
			from = at;
		else if (!(h.flags & FLAG_MORE))
			break;
	}
	step->what = ZMTP_MESSAGE;
	step->used = at;
	return 0;
}

int zmtp_next(struct zmtp *z, struct bytes data, struct zmtp_step *step, struct err *err)
{
	if (data.len == 0)
		return wait_for(step, 0, 1);
	if (z->state == ZMTP_GREETING)
		return take_greeting(z, data, step, err);
	if (z->state == ZMTP_HANDSHAKE)
		return take_ready(z, data, step, err);
	if (z->dropping)
		return drop(z, data, step, err);
	return take_message(z, data, step, err);
}
