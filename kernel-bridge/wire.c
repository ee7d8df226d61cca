#include "kernel-bridge/wire.h"

#include <string.h>

static const char delimiter[] = "<IDS|MSG>";

/* Returns n if it is not there. */
static size_t find_delimiter(const struct bytes *frames, size_t n)
{
	for (size_t i = 0; i < n && i <= WIRE_IDENTS_MAX; i++)
		if (bytes_equal(frames[i], delimiter))
			return i;
	return n;
}

static int decode_parts(enum channel channel, const struct bytes *parts, size_t n_buffers,
	struct jmsg **ret_msg, struct err *err)
{
	struct jmsg_source source = {
		.channel = channel, .buffers = parts + JMSG_PARTS, .n_buffers = n_buffers};
	int rc;

	memcpy(source.part, parts, sizeof(source.part));
	rc = jmsg_new(&source, true, ret_msg, err);
	if (rc == E_INVALID || rc == E_TOO_BIG) {
		struct err why = *err;

		return err_set(err, E_PROTOCOL, "%.400s", why.text);
	}
	return rc;
}

int wire_decode(const struct sign *sign, enum channel channel, const struct bytes *frames, size_t n,
	struct jmsg **ret_msg, struct err *err)
{
	size_t at = find_delimiter(frames, n);
	const struct bytes *signature = frames + at + 1;

	if (at == n)
		return err_set(err, E_PROTOCOL, "a message without the delimiter <IDS|MSG>");
	if (n - at < WIRE_HEAD)
		return err_set(err, E_PROTOCOL, "a message of %zu parts, not of at least %d",
			n - at - 1, WIRE_HEAD - 1);
	if (n - at - WIRE_HEAD > JMSG_BUFFERS_MAX)
		return err_set(
			err, E_PROTOCOL, "a message of more than %d buffers", JMSG_BUFFERS_MAX);
	int rc = sign_check(sign, signature + 1, *signature);
	if (rc != 0)
		return err_set(err, rc,
			rc == E_NOMEM ? "a message's signature: out of memory"
				      : "a message with a wrong signature");
	return decode_parts(channel, signature + 1, n - at - WIRE_HEAD, ret_msg, err);
}

int wire_encode(const struct sign *sign, const struct jmsg *m, struct wire_head *ret_head)
{
	int rc = sign_hex(sign, m->part, ret_head->signature);
	ret_head->frames[0] = (struct bytes){(const uint8_t *)delimiter, sizeof(delimiter) - 1};
	ret_head->frames[1] =
		(struct bytes){(const uint8_t *)ret_head->signature, strlen(ret_head->signature)};
	memcpy(ret_head->frames + 2, m->part, sizeof(m->part));
	return rc;
}
