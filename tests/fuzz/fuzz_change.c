/* A Change of a working folder as a guest tells it, and a pointer as a blob of a guest's could pose
 * as one. What is read of a Change can stand in a tree as far as names go, and what files.json then
 * says is JSON that reads the same again; a pointer is the one text of what it says. */
#include <assert.h>
#include <string.h>

#include "gateway/base/json.h"
#include "history/change.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define ROOM (1u << 24)

static void check_entry(const struct change_entry *e)
{
	assert(!change_path_fault(e->path, strlen(e->path)));
	assert(!memchr(e->path, '\0', strlen(e->path)));
	if (e->mode == MODE_FOLDER) {
		assert(!e->blob && !e->chunks && !e->lost);
		return;
	}
	assert((e->blob != NULL) + (e->chunks != NULL) + (e->lost != NULL) == 1);
	if (e->blob)
		assert(strlen(e->blob) == 40 && is_hex_name(e->blob, 40));
	if (e->chunks)
		assert(e->n_chunks == pointer_chunks(e->bytes) &&
			is_hex_name(e->chunks, e->n_chunks * CHUNK_NAME_LEN));
	if (e->lost)
		assert(*e->lost && strlen(e->lost) < POINTER_REASON);
}

static void check_pointer_of(const struct change_entry *e)
{
	AUTO(buf_done) struct buf text;
	struct pointer p;
	buf_init(&text, POINTER_MAX);
	if (e->lost)
		pointer_add_lost(&text, e->mode, e->bytes, e->lost);
	else if (e->chunks)
		pointer_add(&text, e->bytes, e->chunks, e->n_chunks);
	else
		return;
	assert(!text.failed && pointer_may_be(text.len));
	assert(pointer_read((struct bytes){text.data, text.len}, &p));
	assert(p.bytes == e->bytes && p.is_lost == (e->lost != NULL) && p.n == e->n_chunks);
	if (e->lost)
		assert(p.mode == e->mode && strncmp(p.reason, e->lost, strlen(p.reason)) == 0);
}

static void check_again(const struct change *c, struct bytes json)
{
	struct change again;
	struct err err;
	assert(json_scan(json, NULL, 0, &err) == 0);
	assert(change_read(json, &again, &err) == 0);
	assert(again.full == c->full && again.n_changed == c->n_changed);
	assert(again.n_removed == c->n_removed);
	for (size_t i = 0; i < c->n_changed; i++) {
		assert(strcmp(again.changed[i].path, c->changed[i].path) == 0);
		assert(again.changed[i].mode == c->changed[i].mode);
		assert(!again.changed[i].lost == !c->changed[i].lost);
	}
	for (size_t i = 0; i < c->n_removed; i++)
		assert(strcmp(again.removed[i], c->removed[i]) == 0);
	change_done(&again);
}

static void check_change(struct bytes data)
{
	AUTO(buf_done) struct buf json;
	struct change c;
	struct err err = {0};
	buf_init(&json, ROOM);
	if (change_read(data, &c, &err) != 0) {
		assert(err.text[0]);
	} else {
		assert(c.n_changed <= CHANGE_ENTRIES_MAX && c.n_notes <= CHANGE_NOTES_MAX);
		for (size_t i = 0; i < c.n_changed; i++) {
			check_entry(&c.changed[i]);
			check_pointer_of(&c.changed[i]);
		}
		assert(change_write(&c, &json, &err) == 0);
		check_again(&c, (struct bytes){json.data, json.len});
	}
	change_done(&c);
}

static void check_pointer(struct bytes data)
{
	AUTO(buf_done) struct buf text, names;
	struct pointer p;
	buf_init(&text, POINTER_MAX);
	buf_init(&names, POINTER_MAX);
	if (!pointer_read(data, &p))
		return;
	assert(pointer_may_be(data.len));
	for (size_t i = 0; i < p.n; i++)
		(void)buf_add(&names, p.chunks.data + i * (CHUNK_NAME_LEN + 1), CHUNK_NAME_LEN);
	if (p.is_lost)
		pointer_add_lost(&text, p.mode, p.bytes, p.reason);
	else
		pointer_add(&text, p.bytes, (const char *)names.data, p.n);
	assert(text.len == data.len && memcmp(text.data, data.data, data.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes input = {data, len};
	check_change(input);
	check_pointer(input);
	return 0;
}
