/* How log.c prints: printf with every %s escaped. Inside base only. */
#ifndef COPPICE_BASE_LOG_FORMAT_H
#define COPPICE_BASE_LOG_FORMAT_H

#include <stdarg.h>

#include "gateway/base/base.h"

/* A line in the making; what does not fit is cut. */
struct log_text {
	char *at;
	size_t len, size;
};

void log_text_add(struct log_text *t, const char *data, size_t len);
/* Control characters, quotes and backslashes escaped; in quotes if it is a value (after `=`) that
 * could not be told from its neighbours otherwise. len: at most so many bytes of value. */
void log_text_value(struct log_text *t, const char *value, size_t len);
void log_text_format(struct log_text *t, const char *format, va_list args);

#endif
