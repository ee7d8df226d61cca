#include "gateway/door/outbox.h"

#include <assert.h>
#include <string.h>

#define FIN 0x80

void outbox_init(struct outbox *o)
{
	o->block = xcalloc(1, OUTBOX_HEADROOM + OUTBOX_SIZE);
	o->len = 0;
}

void outbox_done(struct outbox *o)
{
	free(o->block);
	o->block = NULL;
}

uint8_t *outbox_data(const struct outbox *o)
{
	return o->block + OUTBOX_HEADROOM;
}

static size_t put_head(uint8_t *at, uint8_t first, size_t len)
{
	at[0] = first;
	if (len < 126) {
		at[1] = (uint8_t)len;
		return 2;
	}
	size_t digits = len < 65536 ? 2 : 8;
	at[1] = digits == 2 ? 126 : 127;
	for (size_t i = 0; i < digits; i++)
		at[2 + i] = (uint8_t)(len >> (8 * (digits - 1 - i)));
	return 2 + digits;
}

size_t outbox_add(struct outbox *o, enum opcode opcode, struct bytes message, size_t from)
{
	assert(from < message.len);
	size_t room = OUTBOX_SIZE - o->len, left = message.len - from;
	if (left + FRAME_HEAD_MAX > room && o->len > 0)
		return 0;
	size_t take = left + FRAME_HEAD_MAX > room ? room - FRAME_HEAD_MAX : left;
	uint8_t first = (uint8_t)(from == 0 ? opcode : OPCODE_CONTINUE);
	if (take == left)
		first |= FIN;
	uint8_t *at = outbox_data(o) + o->len;
	size_t head = put_head(at, first, take);
	memcpy(at + head, message.data + from, take);
	o->len += head + take;
	return take;
}

bool outbox_add_ping(struct outbox *o)
{
	static const uint8_t ping[] = {FIN | OPCODE_PING, 1, 'c'};
	if (OUTBOX_SIZE - o->len < sizeof ping)
		return false;
	memcpy(outbox_data(o) + o->len, ping, sizeof ping);
	o->len += sizeof ping;
	return true;
}
