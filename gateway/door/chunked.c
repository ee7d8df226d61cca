#include "gateway/door/chunked.h"

#define LINE_MAX   4096
#define DIGITS_MAX 12

static int digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void line_ended(struct chunked *c)
{
	if (c->digits == 0)
		c->at = CHUNK_BROKEN;
	else
		c->at = c->left > 0 ? CHUNK_DATA : CHUNK_TRAIL;
	c->line = 0;
}

static void step_size(struct chunked *c, uint8_t byte)
{
	int value = digit(byte);
	if (value >= 0 && c->digits < DIGITS_MAX) {
		c->left = c->left * 16 + (unsigned)value;
		c->digits++;
	} else if (byte == '\n') {
		line_ended(c);
	} else if (byte == '\r' || byte == ';' || byte == ' ' || byte == '\t') {
		c->at = CHUNK_EXT;
	} else {
		c->at = CHUNK_BROKEN;
	}
}

static void step_end(struct chunked *c, uint8_t byte)
{
	if (byte == '\n') {
		c->at = CHUNK_SIZE;
		c->digits = 0;
		c->left = 0;
	} else if (byte != '\r') {
		c->at = CHUNK_BROKEN;
	}
}

static void step_trail(struct chunked *c, uint8_t byte)
{
	if (byte == '\n' && c->line == 0)
		c->at = CHUNK_DONE;
	else if (byte == '\n')
		c->line = 0;
	else if (byte != '\r' && ++c->line > LINE_MAX)
		c->at = CHUNK_BROKEN;
}

static void step(struct chunked *c, uint8_t byte)
{
	if (c->at == CHUNK_SIZE) {
		step_size(c, byte);
	} else if (c->at == CHUNK_EXT) {
		if (byte == '\n')
			line_ended(c);
		else if (++c->line > LINE_MAX)
			c->at = CHUNK_BROKEN;
	} else if (c->at == CHUNK_END) {
		step_end(c, byte);
	} else {
		step_trail(c, byte);
	}
}

size_t chunked_next(struct chunked *c, struct bytes data, struct bytes *ret_piece)
{
	size_t i = 0;
	*ret_piece = (struct bytes){0};
	while (i < data.len && c->at < CHUNK_DONE) {
		if (c->at != CHUNK_DATA) {
			step(c, data.data[i++]);
			continue;
		}
		size_t n = data.len - i < c->left ? data.len - i : (size_t)c->left;
		*ret_piece = (struct bytes){data.data + i, n};
		c->left -= n;
		if (c->left == 0)
			c->at = CHUNK_END;
		return i + n;
	}
	return i;
}
