#include "history/diff.h"

#include <stdio.h>
#include <string.h>

#include "history/outputs.h"
#include "history/sequence.h"
#include "history/spliced.h"

#define OPS_MAX (1u << 30)

/* ---- operations ---- */

void ops_begin(struct ops *ops, const char *op, const char *key)
{
	(void)buf_addf(
		ops->b, "%s{\"op\":\"%s\",\"key\":%s", ops->n++ ? "," : "", op, key); /* latched */
}

void ops_begin_at(struct ops *ops, const char *op, size_t key)
{
	char digits[24];
	(void)snprintf(digits, sizeof digits, "%zu", key);
	ops_begin(ops, op, digits);
}

void ops_end(struct ops *ops)
{
	(void)buf_add_text(ops->b, "}"); /* latched */
}

static void value_op(struct ops *ops, const char *op, const char *key, struct bytes value)
{
	ops_begin(ops, op, key);
	(void)buf_add_text(ops->b, ",\"value\":"); /* latched, as below */
	(void)buf_add(ops->b, value.data, value.len);
	ops_end(ops);
}

/* A member that stands in one of the two, or in both. */
static void member_op(struct ops *ops, const char *key, struct bytes from, struct bytes to)
{
	if (from.len == to.len && (to.len == 0 || memcmp(from.data, to.data, to.len) == 0))
		return;
	if (to.len > 0) {
		value_op(ops, from.len > 0 ? "replace" : "add", key, to);
		return;
	}
	ops_begin(ops, "remove", key);
	ops_end(ops);
}

struct patch patch_begin(struct ops *ops, const char *key)
{
	struct patch p = {ops, {ops->b, 0}, ops->b->len, ops->n};
	ops_begin(ops, "patch", key);
	(void)buf_add_text(ops->b, ",\"diff\":["); /* latched */
	return p;
}

void patch_end(struct patch *p)
{
	struct buf *b = p->outer->b;
	if (p->inner.n > 0) {
		(void)buf_add_text(b, "]"); /* latched */
		ops_end(p->outer);
		return;
	}
	b->len = p->at;
	if (b->data)
		b->data[b->len] = '\0';
	p->outer->n = p->n;
}

/* ---- texts, by lines ---- */

struct lines {
	struct bytes text;
	struct sequence numbers;
	struct buf places; /* struct bytes */
};

static void lines_init(struct lines *l, struct interner *t, struct bytes text)
{
	struct bytes line;
	l->text = text;
	sequence_init(&l->numbers);
	buf_init(&l->places, OPS_MAX);
	for (size_t at = 0; text_line_next(text, &at, &line);) {
		sequence_add(&l->numbers, t, line);
		(void)buf_add(&l->places, &line, sizeof line); /* as many as numbers */
	}
}

static void lines_done(struct lines *l)
{
	sequence_done(&l->numbers);
	buf_done(&l->places);
}

struct telling {
	struct ops *ops;
	const struct lines *to;
};

static int on_lines(void *data, const struct hunk *h)
{
	const struct telling *t = data;
	if (h->new_n > 0) {
		ops_begin_at(t->ops, "addrange", h->at);
		(void)buf_add_text(t->ops->b, ",\"valuelist\":["); /* latched, as below */
		for (size_t i = 0; i < h->new_n; i++) {
			struct bytes line;
			memcpy(&line, t->to->places.data + (h->new_at + i) * sizeof line,
				sizeof line);
			(void)buf_add_text(t->ops->b, i > 0 ? "," : "");
			(void)buf_add_json_string(t->ops->b, (const char *)line.data, line.len);
		}
		(void)buf_add_text(t->ops->b, "]");
		ops_end(t->ops);
	}
	if (h->n > 0) {
		ops_begin_at(t->ops, "removerange", h->at);
		(void)buf_addf(t->ops->b, ",\"length\":%zu", h->n);
		ops_end(t->ops);
	}
	return 0;
}

static int text_ops(struct bytes from, struct bytes to, struct ops *ops, struct err *err)
{
	struct interner table = {0};
	struct lines a, b;
	lines_init(&a, &table, from);
	lines_init(&b, &table, to);
	struct telling t = {ops, &b};
	int status = buf_check(&b.places, "a difference", err);
	if (status == 0)
		status = sequence_diff(&a.numbers, &b.numbers, on_lines, &t, err);
	lines_done(&a);
	lines_done(&b);
	interner_done(&table);
	return status;
}

/* Of two JSON strings. */
static int string_ops(struct bytes from, struct bytes to, struct ops *ops, struct err *err)
{
	AUTO(buf_done) struct buf a, b;
	buf_init(&a, OUTPUTS_STORED_MAX);
	buf_init(&b, OUTPUTS_STORED_MAX);
	(void)string_unescape(from, &a); /* latched, as below */
	(void)string_unescape(to, &b);
	int status = buf_check(&a, "a text", err);
	if (status == 0)
		status = buf_check(&b, "a text", err);
	return status == 0 ? text_ops((struct bytes){a.data, a.len}, (struct bytes){b.data, b.len},
				     ops, err)
			   : status;
}

/* ---- outputs ---- */

static bool same(struct bytes a, struct bytes b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool is_text_type(struct bytes key)
{
	struct bytes type = string_inside(key);
	return (type.len > 5 && memcmp(type.data, "text/", 5) == 0) ||
	       bytes_equal(type, "application/javascript") || bytes_equal(type, "image/svg+xml");
}

/* NUL-ended, for an operation's key. */
static int copy_key(struct bytes key, struct buf *ret, struct err *err)
{
	buf_reset(ret);
	(void)buf_add(ret, key.data, key.len); /* latched */
	return buf_check(ret, "a key", err);
}

static struct bytes find_member(struct bytes object, struct bytes key)
{
	struct bytes found = {0};
	struct member m;
	for (size_t at = 0; object_next(object, &at, &m);)
		if (same(m.key, key))
			found = m.value;
	return found;
}

static int data_member(
	struct member m, struct bytes other, struct ops *ops, struct buf *key, struct err *err)
{
	int status = copy_key(m.key, key, err);
	if (status != 0 || same(m.value, other))
		return status;
	if (!is_text_type(m.key) || !is_string(m.value) || !is_string(other)) {
		member_op(ops, (const char *)key->data, m.value, other);
		return 0;
	}
	struct patch p = patch_begin(ops, (const char *)key->data);
	status = string_ops(m.value, other, &p.inner, err);
	patch_end(&p);
	return status;
}

/* By MIME type: texts by lines, all else as a whole. */
static int data_ops(struct bytes from, struct bytes to, struct ops *ops, struct err *err)
{
	AUTO(buf_done) struct buf key;
	struct member m;
	int status = 0;
	buf_init(&key, 1 << 20);
	for (size_t at = 0; status == 0 && object_next(from, &at, &m);)
		status = data_member(m, find_member(to, m.key), ops, &key, err);
	for (size_t at = 0; status == 0 && object_next(to, &at, &m);) {
		if (find_member(from, m.key).len > 0)
			continue;
		status = copy_key(m.key, &key, err);
		if (status == 0)
			member_op(ops, (const char *)key.data, (struct bytes){0}, m.value);
	}
	return status;
}

/* Both are of one kind. */
static int output_ops(struct bytes from, struct bytes to, struct ops *ops, struct err *err)
{
	static const char *const whole[] = {"metadata", "ename", "evalue", "traceback"};
	struct bytes text = object_find(from, "text"), new_text = object_find(to, "text");
	int status = 0;
	if (is_object(object_find(from, "data"))) {
		struct patch p = patch_begin(ops, "\"data\"");
		status =
			data_ops(object_find(from, "data"), object_find(to, "data"), &p.inner, err);
		patch_end(&p);
	}
	if (status == 0 && is_string(text) && is_string(new_text)) {
		struct patch p = patch_begin(ops, "\"text\"");
		status = string_ops(text, new_text, &p.inner, err);
		patch_end(&p);
	}
	for (size_t i = 0; status == 0 && i < ARRAY_LEN(whole); i++) {
		char key[32];
		(void)snprintf(key, sizeof key, "\"%s\"", whole[i]);
		member_op(ops, key, object_find(from, whole[i]), object_find(to, whole[i]));
	}
	return status;
}

struct outputs_side {
	struct sequence numbers;
	struct buf places; /* struct bytes: the outputs */
	struct buf *plain; /* each without its count, for the interner */
	size_t n;
};

static void put_plain(struct bytes output, struct buf *ret)
{
	struct member m;
	buf_init(ret, OUTPUTS_STORED_MAX);
	for (size_t at = 0; object_next(output, &at, &m);) {
		if (bytes_equal(m.key, "\"execution_count\""))
			continue;
		(void)buf_add(ret, m.key.data, m.key.len); /* latched, as below */
		(void)buf_add(ret, m.value.data, m.value.len);
	}
}

static void side_init(struct outputs_side *s, struct interner *t, const struct cell *c)
{
	struct bytes list = {c->outputs.data, c->outputs.len}, output;
	size_t n = 0;
	sequence_init(&s->numbers);
	buf_init(&s->places, OPS_MAX);
	for (size_t at = 0; array_next(list, &at, &output);)
		n++;
	s->plain = xcalloc(n + 1, sizeof *s->plain);
	s->n = 0;
	for (size_t at = 0; array_next(list, &at, &output);) {
		struct buf *plain = &s->plain[s->n++];
		put_plain(output, plain);
		sequence_add(&s->numbers, t, (struct bytes){plain->data, plain->len});
		(void)buf_add(&s->places, &output, sizeof output); /* as many as numbers */
	}
}

static void side_done(struct outputs_side *s)
{
	for (size_t i = 0; i < s->n; i++)
		buf_done(&s->plain[i]);
	free(s->plain);
	buf_done(&s->places);
	sequence_done(&s->numbers);
}

static struct bytes output_at(const struct outputs_side *s, size_t i)
{
	struct bytes output;
	memcpy(&output, s->places.data + i * sizeof output, sizeof output);
	return output;
}

struct comparing {
	const struct outputs_side *from, *to;
	struct ops *ops;
	struct err *err;
};

static bool same_kind(struct bytes a, struct bytes b)
{
	return same(object_find(a, "output_type"), object_find(b, "output_type")) &&
	       same(object_find(a, "name"), object_find(b, "name"));
}

/* The first of a stretch that went become the first of what came, as long as they are of one kind.
 */
static int on_outputs(void *data, const struct hunk *h)
{
	const struct comparing *c = data;
	size_t k = 0;
	for (; k < h->n && k < h->new_n; k++) {
		struct bytes a = output_at(c->from, h->at + k);
		struct bytes b = output_at(c->to, h->new_at + k);
		char key[24];
		if (!same_kind(a, b))
			break;
		(void)snprintf(key, sizeof key, "%zu", h->at + k);
		struct patch p = patch_begin(c->ops, key);
		int status = output_ops(a, b, &p.inner, c->err);
		patch_end(&p);
		if (status != 0)
			return status;
	}
	if (k < h->new_n) {
		ops_begin_at(c->ops, "addrange", h->at + k);
		(void)buf_add_text(c->ops->b, ",\"valuelist\":["); /* latched, as below */
		for (size_t i = k; i < h->new_n; i++) {
			struct bytes output = output_at(c->to, h->new_at + i);
			(void)buf_add_text(c->ops->b, i > k ? "," : "");
			(void)buf_add(c->ops->b, output.data, output.len);
		}
		(void)buf_add_text(c->ops->b, "]");
		ops_end(c->ops);
	}
	if (k < h->n) {
		ops_begin_at(c->ops, "removerange", h->at + k);
		(void)buf_addf(c->ops->b, ",\"length\":%zu", h->n - k);
		ops_end(c->ops);
	}
	return 0;
}

int outputs_ops(const struct cell *from, const struct cell *to, struct ops *ops, struct err *err)
{
	struct interner table = {0};
	struct outputs_side a, b;
	struct bytes x = {from->outputs.data, from->outputs.len};
	struct bytes y = {to->outputs.data, to->outputs.len};
	if (same(x, y))
		return 0;
	side_init(&a, &table, from);
	side_init(&b, &table, to);
	struct comparing c = {&a, &b, ops, err};
	int status = sequence_diff(&a.numbers, &b.numbers, on_outputs, &c, err);
	side_done(&a);
	side_done(&b);
	interner_done(&table);
	return status;
}

/* ---- cells ---- */

static struct bytes bytes_of(const struct buf *b)
{
	return (struct bytes){b->data, b->len};
}

static void add_object(struct buf *b, const struct buf *object, const char *otherwise)
{
	if (object->len > 0)
		(void)buf_add(b, object->data, object->len); /* latched, as below */
	else
		(void)buf_add_text(b, otherwise);
}

static const char *kind_name(const struct cell *c)
{
	static const char *const names[] = {"\"code\"", "\"markdown\"", "\"raw\""};
	return names[c->kind];
}

void cell_join(const struct cell *c, struct buf *ret_json)
{
	const char *source = c->source.data ? (const char *)c->source.data : "";
	(void)buf_addf(ret_json, "{\"cell_type\":%s,\"id\":\"%s\",\"metadata\":", kind_name(c),
		c->id); /* latched, as below */
	add_object(ret_json, &c->metadata, "{}");
	if (c->attachments.len > 0) {
		(void)buf_add_text(ret_json, ",\"attachments\":");
		add_object(ret_json, &c->attachments, "{}");
	}
	if (c->kind == CELL_CODE) {
		(void)buf_addf(ret_json, ",\"execution_count\":%s,\"outputs\":", c->count);
		add_object(ret_json, &c->outputs, "[]");
	}
	(void)buf_add_text(ret_json, ",\"source\":");
	(void)buf_add_json_string(ret_json, source, c->source.len);
	(void)buf_add_text(ret_json, "}");
}

int cell_ops(const struct cell *from, const struct cell *to, struct ops *ops, struct err *err)
{
	static const struct bytes empty = {(const uint8_t *)"{}", 2};
	struct bytes metadata = from->metadata.len ? bytes_of(&from->metadata) : empty;
	struct bytes new_metadata = to->metadata.len ? bytes_of(&to->metadata) : empty;
	char id[CELL_ID_SIZE + 2];
	if (strcmp(from->id, to->id) != 0) {
		int len = snprintf(id, sizeof id, "\"%s\"", to->id);
		value_op(
			ops, "replace", "\"id\"", (struct bytes){(const uint8_t *)id, (size_t)len});
	}
	member_op(ops, "\"metadata\"", metadata, new_metadata);
	member_op(ops, "\"attachments\"", bytes_of(&from->attachments), bytes_of(&to->attachments));
	if (same(bytes_of(&from->source), bytes_of(&to->source)))
		return 0;
	struct patch p = patch_begin(ops, "\"source\"");
	int status = text_ops(bytes_of(&from->source), bytes_of(&to->source), &p.inner, err);
	patch_end(&p);
	return status;
}
