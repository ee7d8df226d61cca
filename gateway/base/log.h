/* Structured log lines to stderr: `time level event key=value ... kernel=ID`. Event word first,
 * then key=value pairs; the context (kernel, client, execution) comes from the struct. No cell
 * source or output above debug level; tokens and keys never, at any level. Values from outside pass
 * through %s and are escaped (control characters, quotes). Any thread. */
#ifndef COPPICE_BASE_LOG_H
#define COPPICE_BASE_LOG_H

#include "base.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Where lines go: shared by all loggers of one gateway. */
struct log_sink {
	enum log_level level;
	bool json;						 /* one JSON object a line */
	void (*write)(void *data, const char *line, size_t len); /* NULL: stderr */
	void *data;
};

struct log {
	const struct log_sink *sink; /* NULL: nothing is written */
	char context[128];	     /* " kernel=ID client=N", or "" */
};

void log_init(struct log *log, const struct log_sink *sink);
/* A child context: parent's plus key=value. */
void log_child(struct log *child, const struct log *parent, const char *key, const char *value);

void log_line(const struct log *log, enum log_level level, const char *format, ...) PRINTF(3, 4);
bool log_on(const struct log *log, enum log_level level);
bool log_level_parse(const char *word, enum log_level *ret_level);

#define log_debug(log, ...) log_line(log, LOG_DEBUG, __VA_ARGS__)
#define log_info(log, ...)  log_line(log, LOG_INFO, __VA_ARGS__)
#define log_warn(log, ...)  log_line(log, LOG_WARN, __VA_ARGS__)
#define log_error(log, ...) log_line(log, LOG_ERROR, __VA_ARGS__)

#endif
