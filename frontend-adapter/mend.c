/* One rule after the other; what each changed is told line by line. */
#include "frontend-adapter/mend.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/mend_rules.h"

static bool add_text(cJSON *to, const char *key, struct bytes text)
{
	char *copy = malloc(text.len + 1);
	if (!copy)
		return false;
	if (text.len > 0)
		memcpy(copy, text.data, text.len);
	copy[text.len] = '\0';
	bool added = cJSON_AddStringToObject(to, key, copy);
	free(copy);
	return added;
}

bool mend_note(struct cJSON *changes, const char *rule, struct bytes before, struct bytes after)
{
	cJSON *change = cJSON_CreateObject();
	if (change && cJSON_AddStringToObject(change, "rule", rule) &&
		add_text(change, "before", before) && add_text(change, "after", after) &&
		cJSON_AddItemToArray(changes, change))
		return true;
	cJSON_Delete(change);
	return false;
}

static struct bytes next_line(struct bytes *text)
{
	const uint8_t *nl = text->len > 0 ? memchr(text->data, '\n', text->len) : NULL;
	struct bytes line = {text->data, nl ? (size_t)(nl - text->data) + 1 : text->len};
	*text = (struct bytes){text->data + line.len, text->len - line.len};
	return line;
}

static bool same(struct bytes a, struct bytes b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static struct bytes without_end(struct bytes lines)
{
	if (lines.len > 0 && lines.data[lines.len - 1] == '\n')
		lines.len--;
	return lines;
}

static bool note(cJSON *changes, const char *rule, struct bytes before, struct bytes after)
{
	return mend_note(changes, rule, without_end(before), without_end(after));
}

/* Neighbouring lines that changed are one change. */
static bool note_lines(cJSON *changes, const char *rule, struct bytes before, struct bytes after)
{
	struct bytes old = {0}, new = {0};
	while (before.len > 0 && after.len > 0) {
		struct bytes a = next_line(&before), b = next_line(&after);
		if (same(a, b)) {
			if (old.len > 0 && !note(changes, rule, old, new))
				return false;
			old.len = new.len = 0;
			continue;
		}
		old = old.len > 0 ? (struct bytes){old.data, old.len + a.len} : a;
		new = new.len > 0 ? (struct bytes){new.data, new.len + b.len} : b;
	}
	return old.len == 0 || note(changes, rule, old, new);
}

struct rule {
	const char *name;
	bool whole; /* it takes lines away: the change is told as one */
	void (*apply)(struct bytes code, struct buf *ret);
};

static const struct rule rules[] = {
	{"prompt", true, mend_prompts},
	{"quotes", false, mend_quotes},
	{"spaces", false, mend_spaces},
	{"shell-line", false, mend_shell},
	{"backend", false, mend_backend},
};

/* now holds the code before and after. */
static int apply(const struct rule *rule, struct buf *now, cJSON *changes, struct err *err)
{
	AUTO(buf_done) struct buf next;
	buf_init(&next, now->max);
	struct bytes before = {now->data, now->len};
	rule->apply(before, &next);
	if (buf_check(&next, "code", err) != 0)
		return next.code;
	struct bytes after = {next.data, next.len};
	if (same(before, after))
		return 0;
	bool told = rule->whole ? note(changes, rule->name, before, after)
				: note_lines(changes, rule->name, before, after);
	if (!told)
		return err_set(err, E_NOMEM, "changes: out of memory");
	struct buf old = *now;
	*now = next;
	next = old;
	return 0;
}

int mend_python(struct bytes code, struct buf *ret, struct cJSON *changes, struct err *err)
{
	AUTO(buf_done) struct buf now;
	buf_init(&now, 2 * code.len + 64);
	(void)buf_add(&now, code.data, code.len); /* latched */
	for (size_t i = 0; i < ARRAY_LEN(rules) && !now.failed; i++) {
		int status = py_is_cell_magic(code) ? 0 : apply(&rules[i], &now, changes, err);
		if (status != 0)
			return status;
	}
	if (buf_check(&now, "code", err) != 0)
		return now.code;
	(void)buf_add(ret, now.data, now.len); /* latched, looked at next */
	return buf_check(ret, "code", err) == 0 ? 0 : ret->code;
}
