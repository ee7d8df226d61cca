#include "gateway/base/log.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gateway/base/buf.h"
#include "gateway/base/clock.h"
#include "gateway/base/json_chars.h"
#include "gateway/base/log_format.h"

#define LOG_LINE_SIZE 4096

static const char *const log_levels[] = {"debug", "info", "warn", "error"};

void log_init(struct log *log, const struct log_sink *sink)
{
	*log = (struct log){.sink = sink};
}

void log_child(struct log *child, const struct log *parent, const char *key, const char *value)
{
	struct log made = *parent;
	struct log_text t = {made.context, strlen(made.context), sizeof made.context};
	log_text_add(&t, " ", 1);
	log_text_add(&t, key, strlen(key));
	log_text_add(&t, "=", 1);
	log_text_value(&t, value, SIZE_MAX / 2);
	*child = made;
}

bool log_on(const struct log *log, enum log_level level)
{
	return log && log->sink && level >= log->sink->level;
}

bool log_level_parse(const char *word, enum log_level *ret_level)
{
	for (unsigned i = 0; i < ARRAY_LEN(log_levels); i++) {
		if (strcmp(word, log_levels[i]) == 0) {
			*ret_level = (enum log_level)i;
			return true;
		}
	}
	return false;
}

static void write_out(const struct log_sink *sink, const char *line, size_t len)
{
	if (sink->write)
		sink->write(sink->data, line, len);
	else if (write(STDERR_FILENO, line, len) < 0)
		return; /* nowhere is left to say so */
}

/* The value of key=value at at, unquoted, as a JSON string; returns where it ends. */
static const char *add_json_value(struct buf *b, const char *at)
{
	char value[LOG_LINE_SIZE];
	size_t n = 0;
	bool quoted = *at == '"';
	at += quoted;
	while (*at && (quoted ? *at != '"' : *at != ' ')) {
		if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
			at++;
		value[n++] = *at++;
	}
	(void)buf_add_json_string(b, value, n); /* the latch is read at the end */
	return quoted && *at ? at + 1 : at;
}

/* From `event word key=value ...`. A word without `=` joins "text". */
static void add_json_pairs(struct buf *b, const char *at)
{
	char text[LOG_LINE_SIZE];
	size_t text_len = 0, event_len = strcspn(at, " ");
	(void)buf_add_text(b, ",\"event\":"); /* latched, as all of these */
	(void)buf_add_json_string(b, at, event_len);
	at += event_len;
	while (*at) {
		size_t len = strcspn(at, " =");
		if (at[len] == '=' && len > 0) {
			(void)buf_add_text(b, ",");
			(void)buf_add_json_string(b, at, len);
			(void)buf_add_text(b, ":");
			at = add_json_value(b, at + len + 1);
			continue;
		}
		len = len == 0 ? 1 : len;
		memcpy(text + text_len, at, len);
		text_len += len;
		at += len;
	}
	while (text_len > 0 && text[text_len - 1] == ' ')
		text_len--;
	size_t from = strspn(text_len ? text : "", " ");
	if (text_len > from) {
		(void)buf_add_text(b, ",\"text\":");
		(void)buf_add_json_string(b, text + from, text_len - from);
	}
}

/* Bytes that are no UTF-8 (cut characters too) would make the line no JSON. */
static void force_utf8(char *text, size_t len)
{
	uint8_t *at = (uint8_t *)text, *end = at + len;
	while (at < end) {
		size_t n = *at < 0x80 ? 1 : json_utf8_len(at, end);
		if (n == 0)
			*at = '?';
		at += n ? n : 1;
	}
}

static void write_json(
	const struct log_sink *sink, const char *stamp, const char *level, char *line, size_t len)
{
	AUTO(buf_done) struct buf b;
	buf_init(&b, 8 * LOG_LINE_SIZE);
	force_utf8(line, len);
	(void)buf_addf(&b, "{\"time\":\"%s\",\"level\":\"%s\"", stamp, level);
	add_json_pairs(&b, line);
	(void)buf_add_text(&b, "}\n");
	if (!b.failed)
		write_out(sink, (const char *)b.data, b.len);
}

void log_line(const struct log *log, enum log_level level, const char *format, ...)
{
	if (!log_on(log, level))
		return;
	char line[LOG_LINE_SIZE], stamp[CLOCK_STAMP_SIZE];
	struct log_text t = {line, 0, sizeof line - 1}; /* room for the line's end */
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_stamp((int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000, stamp);
	if (!log->sink->json) {
		log_text_add(&t, stamp, strlen(stamp));
		log_text_add(&t, " ", 1);
		log_text_add(&t, log_levels[level], strlen(log_levels[level]));
		log_text_add(&t, " ", 1);
	}
	line[t.len] = '\0';
	va_list args;
	va_start(args, format);
	log_text_format(&t, format, args);
	va_end(args);
	log_text_add(&t, log->context, strlen(log->context));
	if (log->sink->json) {
		write_json(log->sink, stamp, log_levels[level], line, t.len);
		return;
	}
	line[t.len++] = '\n';
	write_out(log->sink, line, t.len);
}
