#include "history/change.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "history/spliced.h"

/* ---- texts ---- */

/* NULL: it is no string, or holds NUL. There is room: a text is never longer than its JSON. */
static const char *take_text(struct change *c, struct bytes raw)
{
	size_t at = c->memory.len;
	if (!is_string(raw) || string_unescape(raw, &c->memory) != 0)
		return NULL;
	size_t len = c->memory.len - at;
	char *text = (char *)c->memory.data + at;
	if (memchr(text, '\0', len) || buf_add(&c->memory, "", 1) != 0) {
		c->memory.len = at;
		return NULL;
	}
	return text;
}

/* For people: one line, and not a long one. */
static const char *take_reason(struct change *c, struct bytes raw, const char *otherwise)
{
	char *text = (char *)take_text(c, raw);
	if (!text || !*text)
		return otherwise;
	size_t len = strlen(text);
	if (len >= POINTER_REASON) {
		len = POINTER_REASON - 1;
		while (len > 0 && ((uint8_t)text[len] & 0xc0) == 0x80)
			len--; /* no half of a character at the cut */
		text[len] = '\0';
	}
	bool blank = true;
	for (char *at = text; *at; at++) {
		if ((uint8_t)*at < ' ' || *at == 0x7f)
			*at = ' ';
		blank = blank && *at == ' ';
	}
	return blank ? otherwise : text;
}

void change_note(struct change *c, const char *path, const char *reason)
{
	if (c->n_notes == CHANGE_NOTES_MAX) {
		c->more++;
		return;
	}
	c->notes[c->n_notes++] = (struct change_note){path, reason};
}

/* ---- paths ---- */

static const char *name_fault(const char *name, size_t len)
{
	if (len == 0)
		return "refused: a part of its path is empty";
	if (len <= 2 && strncmp(name, "..", len) == 0)
		return "refused: its path leads elsewhere";
	if (len > CHANGE_NAME_MAX)
		return "refused: a part of its path is longer than 255 bytes";
	if (len == strlen(EMPTY_FOLDER) && memcmp(name, EMPTY_FOLDER, len) == 0)
		return "refused: " EMPTY_FOLDER " is a name of ours";
	for (size_t i = 0; i < len; i++)
		if ((uint8_t)name[i] < ' ' || name[i] == 0x7f)
			return "refused: its path holds a control character";
	return NULL;
}

const char *change_path_fault(const char *path, size_t len)
{
	size_t depth = 0;
	if (len > CHANGE_PATH_MAX)
		return "refused: its path is longer than 4096 bytes";
	for (const char *at = path, *end = path + len;;) {
		const char *slash = memchr(at, '/', (size_t)(end - at));
		size_t n = (size_t)((slash ? slash : end) - at);
		const char *fault = name_fault(at, n);
		if (fault)
			return fault;
		if (++depth > CHANGE_DEPTH_MAX)
			return "refused: it lies more than 100 folders deep";
		if (!slash)
			return NULL;
		at = slash + 1;
	}
}

/* NULL: it was refused, and that is told. */
static const char *take_path(struct change *c, struct bytes raw)
{
	const char *path = take_text(c, raw);
	if (!path) {
		change_note(c, "", "refused: its path is no text, or holds NUL");
		return NULL;
	}
	const char *fault = change_path_fault(path, strlen(path));
	if (!fault)
		return path;
	/* Cut where it is told: it may be as long as the guest likes. */
	if (strlen(path) > CHANGE_PATH_MAX)
		path = "(a path that is too long)";
	change_note(c, path, fault);
	return NULL;
}

/* ---- entries ---- */

static const struct {
	const char *text;
	unsigned mode;
} modes[] = {{"100644", MODE_FILE}, {"100755", MODE_EXECUTABLE}, {"120000", MODE_LINK},
	{"40000", MODE_FOLDER}};

static unsigned take_mode(struct bytes raw)
{
	struct bytes text = string_inside(raw);
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (bytes_equal(text, modes[i].text))
			return modes[i].mode;
	return 0;
}

static const char *take_blob(struct change *c, struct bytes raw)
{
	const char *name = take_text(c, raw);
	return name && strlen(name) == 40 && is_hex_name(name, 40) ? name : NULL;
}

/* The names, one behind the other without anything between. */
static void take_chunks(struct change *c, struct bytes list, struct change_entry *e)
{
	struct bytes raw;
	size_t at_memory = c->memory.len, n = 0;
	bool fine = true;
	for (size_t at = 0; fine && array_next(list, &at, &raw); n++) {
		struct bytes name = string_inside(raw);
		fine = n < POINTER_CHUNKS && name.len == CHUNK_NAME_LEN &&
		       is_hex_name((const char *)name.data, name.len) &&
		       buf_add(&c->memory, name.data, name.len) == 0;
	}
	if (!fine || n == 0 || n != pointer_chunks(e->bytes) || buf_add(&c->memory, "", 1) != 0) {
		c->memory.len = at_memory;
		e->lost = "its list of chunks is none of a file of that size";
		return;
	}
	e->chunks = (const char *)c->memory.data + at_memory;
	e->n_chunks = n;
}

static void take_content(struct change *c, struct bytes raw, struct change_entry *e)
{
	struct bytes lost = object_find(raw, "lost"), chunks = object_find(raw, "chunks");
	(void)number_u64(object_find(raw, "bytes"), &e->bytes); /* else 0 */
	if (e->mode == MODE_FOLDER)
		return;
	if (lost.len > 0)
		e->lost = take_reason(c, lost, "not kept");
	else if (chunks.len > 0 && e->mode == MODE_LINK)
		e->lost = "a symbolic link of that size is none";
	else if (chunks.len > 0)
		take_chunks(c, chunks, e);
	else
		e->blob = take_blob(c, object_find(raw, "blob"));
	if (!e->lost && !e->chunks && !e->blob)
		e->lost = "its content has no name";
}

static void take_entry(struct change *c, struct bytes raw)
{
	const char *path = take_path(c, object_find(raw, "path"));
	struct change_entry e = {.path = path, .mode = take_mode(object_find(raw, "mode"))};
	if (!path)
		return;
	if (e.mode == 0) {
		change_note(c, path, "refused: its mode is none that is kept");
		return;
	}
	if (c->n_changed == CHANGE_ENTRIES_MAX) {
		change_note(c, path, "refused: one of too many");
		return;
	}
	take_content(c, raw, &e);
	c->changed[c->n_changed++] = e;
}

static void take_note(struct change *c, struct bytes raw)
{
	const char *path = take_text(c, object_find(raw, "path"));
	const char *reason = take_reason(c, object_find(raw, "reason"), "not kept");
	bool fits = path && strlen(path) <= CHANGE_PATH_MAX;
	change_note(c, fits ? path : "(a path that cannot be told)", reason);
}

static size_t count(struct bytes list)
{
	struct bytes one;
	size_t n = 0;
	for (size_t at = 0; array_next(list, &at, &one);)
		n++;
	return n < CHANGE_ENTRIES_MAX ? n : CHANGE_ENTRIES_MAX;
}

static void take_removed(struct change *c, struct bytes list)
{
	struct bytes raw;
	for (size_t at = 0; array_next(list, &at, &raw);) {
		const char *path = take_path(c, raw);
		if (path && c->n_removed < CHANGE_ENTRIES_MAX)
			c->removed[c->n_removed++] = path;
		else if (path)
			change_note(c, path, "its removal was refused: one of too many");
	}
}

int change_read(struct bytes json, struct change *ret, struct err *err)
{
	struct bytes one;
	*ret = (struct change){0};
	buf_init(&ret->memory, json.len + 64);
	if (json.len > CHANGE_MAX)
		return err_set(err, E_TOO_BIG, "a change of files of %zu bytes", json.len);
	if (json_scan(json, NULL, 0, err) != 0)
		return err_wrap(err, "a change of files");
	struct bytes changed = object_find(json, "changed"), removed = object_find(json, "removed");
	struct bytes lost = object_find(json, "lost");
	if (!is_object(json) || (changed.len > 0 && !is_array(changed)) ||
		(removed.len > 0 && !is_array(removed)) || (lost.len > 0 && !is_array(lost)))
		return err_set(err, E_INVALID, "a change of files is no change");
	if (buf_reserve(&ret->memory, json.len + 32) != 0)
		return err_set(err, E_NOMEM, "a change of files: out of memory");
	ret->changed = calloc(count(changed) + 1, sizeof *ret->changed);
	ret->removed = calloc(count(removed) + 1, sizeof *ret->removed);
	if (!ret->changed || !ret->removed)
		return err_set(err, E_NOMEM, "a change of files: out of memory");
	ret->full = bytes_equal(object_find(json, "full"), "true");
	for (size_t at = 0; array_next(lost, &at, &one);)
		take_note(ret, one);
	for (size_t at = 0; array_next(changed, &at, &one);)
		take_entry(ret, one);
	take_removed(ret, removed);
	return 0;
}

void change_done(struct change *c)
{
	free(c->changed);
	free(c->removed);
	buf_done(&c->memory);
	c->changed = NULL;
	c->removed = NULL;
}

/* ---- files.json ---- */

static void add_text(struct buf *b, const char *key, const char *text)
{
	(void)buf_addf(b, "\"%s\":", key); /* latched, as below */
	(void)buf_add_json_string(b, text, strlen(text));
}

static void add_content(struct buf *b, const struct change_entry *e)
{
	/* All latched. */
	if (e->mode == MODE_FOLDER)
		return;
	(void)buf_addf(b, ",\"bytes\":%llu,", (unsigned long long)e->bytes);
	if (e->lost) {
		add_text(b, "lost", e->lost);
		return;
	}
	if (e->blob) {
		add_text(b, "blob", e->blob);
		return;
	}
	(void)buf_add_text(b, "\"chunks\":[");
	for (size_t i = 0; i < e->n_chunks; i++)
		(void)buf_addf(b, "%s\"%.*s\"", i ? "," : "", (int)CHUNK_NAME_LEN,
			e->chunks + i * CHUNK_NAME_LEN);
	(void)buf_add_text(b, "]");
}

static void add_notes(struct buf *b, const struct change *c)
{
	const char *before = "\n";
	for (size_t i = 0; i < c->n_notes; i++) {
		(void)buf_addf(b, "%s{", before); /* latched, as below */
		add_text(b, "path", c->notes[i].path);
		(void)buf_add_text(b, ",");
		add_text(b, "reason", c->notes[i].reason);
		(void)buf_add_text(b, "}");
		before = ",\n";
	}
	if (c->more > 0)
		(void)buf_addf(b, ",\n{\"path\":\"\",\"reason\":\"and %llu more\"}",
			(unsigned long long)c->more);
}

int change_write(const struct change *c, struct buf *ret_json, struct err *err)
{
	const char *before = "\n";
	/* All latched. */
	(void)buf_addf(ret_json, "{\n\"full\":%s,\n\"changed\":[", c->full ? "true" : "false");
	for (size_t i = 0; i < c->n_changed; i++, before = ",\n") {
		const struct change_entry *e = &c->changed[i];
		(void)buf_addf(ret_json, "%s{", before);
		add_text(ret_json, "path", e->path);
		(void)buf_addf(ret_json, ",\"mode\":\"%o\"", e->mode);
		add_content(ret_json, e);
		(void)buf_add_text(ret_json, "}");
	}
	(void)buf_add_text(ret_json, "\n],\n\"removed\":[");
	before = "\n";
	for (size_t i = 0; i < c->n_removed; i++, before = ",\n") {
		(void)buf_add_text(ret_json, before);
		(void)buf_add_json_string(ret_json, c->removed[i], strlen(c->removed[i]));
	}
	(void)buf_add_text(ret_json, "\n],\n\"lost\":[");
	add_notes(ret_json, c);
	(void)buf_add_text(ret_json, "\n]\n}\n");
	return buf_check(ret_json, "files.json", err);
}
