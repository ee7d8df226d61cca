#include "history/percent.h"

#include <ctype.h>
#include <string.h>

static bool is_space(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static struct bytes from(struct bytes line, size_t at)
{
	return (struct bytes){line.data + at, line.len - at};
}

static struct bytes skip_spaces(struct bytes line)
{
	size_t at = 0;
	while (at < line.len && is_space(line.data[at]))
		at++;
	return from(line, at);
}

static bool begins(struct bytes line, const char *text)
{
	size_t n = strlen(text);
	return line.len >= n && memcmp(line.data, text, n) == 0;
}

static bool is_blank(struct bytes line)
{
	return skip_spaces(line).len == 0;
}

static bool is_letter(struct bytes line, size_t at)
{
	return at < line.len && isalpha(line.data[at]) && line.data[at] < 0x80;
}

/* ---- beginnings of cells ---- */

/* Behind the `#` of a beginning: `%%`, `<codecell>`, `In[3]:`. */
static bool is_begin(struct bytes text, struct bytes *ret_rest)
{
	*ret_rest = (struct bytes){0};
	text = skip_spaces(text);
	if (begins(text, "%%")) {
		size_t at = 2;
		while (at < text.len && text.data[at] == '%')
			at++;
		*ret_rest = from(text, at);
		return at == text.len ? at == 2 : is_space(text.data[at]);
	}
	if (begins(text, "<codecell>"))
		return is_blank(from(text, 10));
	if (!begins(text, "In["))
		return false;
	size_t at = 3;
	while (at < text.len && strchr("0123456789 ", text.data[at]) && text.data[at])
		at++;
	if (at == text.len || text.data[at++] != ']')
		return false;
	at += at < text.len && text.data[at] == ':';
	return is_blank(from(text, at));
}

bool percent_marker(struct bytes line, struct bytes *ret_rest)
{
	line = skip_spaces(line);
	return begins(line, "#") && is_begin(from(line, 1), ret_rest);
}

/* A beginning behind one `#` or more. */
static bool is_like_marker(struct bytes line)
{
	struct bytes rest;
	size_t hashes = 0;
	for (line = skip_spaces(line); begins(line, "#"); line = skip_spaces(from(line, 1)))
		hashes++;
	return hashes > 0 && is_begin(line, &rest);
}

/* ---- IPython ---- */

/* Past `# ` and `#`, any number of them. */
static struct bytes skip_comments(struct bytes line)
{
	while (begins(line, "#"))
		line = from(line, begins(line, "# ") ? 2 : 1);
	return line;
}

/* `%time`, `%%bash`. */
static bool is_magic(struct bytes line)
{
	size_t n = 0;
	while (n < 3 && n < line.len && line.data[n] == '%')
		n++;
	return n > 0 && is_letter(line, n);
}

/* `!ls`, `?print`. */
static bool is_command(struct bytes line)
{
	if (!begins(line, "!") && !begins(line, "?"))
		return false;
	line = skip_spaces(from(line, 1));
	return is_letter(line, 0) ||
	       (line.len > 0 && line.data[0] && strchr(".~$\\/{}", line.data[0]));
}

/* `files = !ls`, `t = %time f()`. */
static bool is_assignment(struct bytes line)
{
	size_t at = 0;
	while (at < line.len && (isalnum(line.data[at]) || line.data[at] == '_'))
		at++;
	if (at == 0 || isdigit(line.data[0]))
		return false;
	line = skip_spaces(from(line, at));
	if (!begins(line, "="))
		return false;
	line = skip_spaces(from(line, 1));
	return is_magic(line) || (begins(line, "!") && is_letter(line, 1));
}

/* `print?`: one word that ends with a question mark. */
static bool is_help(struct bytes line)
{
	size_t at = 0;
	while (at < line.len && !is_space(line.data[at]))
		at++;
	return at > 0 && line.data[at - 1] == '?' && is_blank(from(line, at));
}

/* `ls`, `cd ..`: words that IPython takes for commands, unless something is assigned to them. */
static bool is_alias(struct bytes line)
{
	static const char *const names[] = {"cat", "cd", "cp", "mv", "rm", "rmdir", "mkdir", "copy",
		"ddir", "echo", "ls", "ldir", "ren"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i]);
		if (!begins(line, names[i]))
			continue;
		if (line.len == n)
			return true;
		if (is_space(line.data[n]) &&
			(line.len == n + 1 || !strchr("=,", line.data[n + 1])))
			return true;
	}
	return false;
}

/* However often it is commented out already. */
static bool is_ipython(struct bytes line)
{
	if (is_alias(skip_comments(line)))
		return true;
	struct bytes text = skip_comments(skip_spaces(line));
	return is_magic(text) || is_command(skip_spaces(text)) || is_help(text) ||
	       is_assignment(skip_spaces(text));
}

/* ---- quotes ---- */

/* Follows the line to its end: a text of one quote ends there. */
static void follow(struct percent_state *s, struct bytes line)
{
	char single = 0;
	for (size_t i = 0; i < line.len; i++) {
		char c = (char)line.data[i];
		bool three = i + 2 < line.len && line.data[i + 1] == line.data[i] &&
			     line.data[i + 2] == line.data[i];
		if (c == '\\' && (single || s->triple)) {
			i++;
		} else if (c == '#' && !single && !s->triple) {
			return;
		} else if (c != '"' && c != '\'') {
			continue;
		} else if (s->triple) {
			if (c == s->triple && three) {
				s->triple = 0;
				i += 2;
			}
		} else if (single) {
			single = c == single ? 0 : single;
		} else if (three) {
			s->triple = c;
			i += 2;
		} else {
			single = c;
		}
	}
}

/* What is IPython's in this place, said of the line in a cell and of it in a script alike. */
static bool take_ipython(struct percent_state *s, struct bytes line)
{
	bool is = !s->triple && (s->continued || is_ipython(line));
	size_t n = line.len;
	while (n > 0 && is_space(line.data[n - 1]))
		n--;
	s->continued = is && n > 0 && line.data[n - 1] == '\\';
	if (!is)
		follow(s, line);
	return is;
}

/* `%%` would be a beginning behind one `# `, and stands behind two; so does whatever looks like one
 * then. In text, and in a line that goes on with a command, any line may be so. */
static bool stands_behind_two(struct bytes line)
{
	struct bytes rest;
	return is_begin(line, &rest) || is_like_marker(line);
}

void percent_escape(struct percent_state *s, struct bytes line, struct buf *ret_text)
{
	bool continued = s->continued && !s->triple;
	bool escape = take_ipython(s, line) || is_like_marker(line);
	size_t indent = continued ? 0 : line.len - skip_spaces(line).len;
	(void)buf_add(ret_text, line.data, escape ? indent : line.len); /* latched, as below */
	if (!escape)
		return;
	(void)buf_add_text(ret_text, continued && stands_behind_two(line) ? "# # " : "# ");
	(void)buf_add(ret_text, line.data + indent, line.len - indent);
}

void percent_unescape(struct percent_state *s, struct bytes line, struct buf *ret_text)
{
	bool continued = s->continued && !s->triple;
	bool ipython = take_ipython(s, line);
	struct bytes text = skip_spaces(line);
	size_t indent = line.len - text.len, skip = 0;
	if (continued && begins(text, "# # ") && is_like_marker(line))
		skip = 4;
	else if (begins(text, "# ") && (ipython || is_like_marker(line)))
		skip = 2;
	else if (begins(text, "#") && ipython)
		skip = 1;
	(void)buf_add(ret_text, line.data, indent); /* latched, as below */
	(void)buf_add(ret_text, text.data + skip, text.len - skip);
}

void percent_comment(struct bytes line, struct buf *ret_text)
{
	bool escape = stands_behind_two(line);
	(void)buf_add_text(ret_text, line.len == 0 ? "#" : escape ? "# # " : "# "); /* latched */
	(void)buf_add(ret_text, line.data, line.len);				    /* as above */
}

void percent_uncomment(struct bytes line, struct buf *ret_text)
{
	if (begins(line, "#"))
		line = from(line, begins(line, "# ") ? 2 : 1);
	if (begins(line, "# ") && is_like_marker(line))
		line = from(line, 2);
	(void)buf_add(ret_text, line.data, line.len); /* latched */
}
