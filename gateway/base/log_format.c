#include "gateway/base/log_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void log_text_add(struct log_text *t, const char *data, size_t len)
{
	size_t room = t->size - 1 - t->len;
	if (len > room)
		len = room;
	memcpy(t->at + t->len, data, len);
	t->len += len;
	t->at[t->len] = '\0';
}

static void add_text(struct log_text *t, const char *text)
{
	log_text_add(t, text, strlen(text));
}

static bool needs_quotes(const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)value[i] <= ' ' || value[i] == '"' || value[i] == '=')
			return true;
	return len == 0;
}

static void add_escaped(struct log_text *t, unsigned char c)
{
	char text[8];
	if (c == '\n')
		add_text(t, "\\n");
	else if (c < 0x20 || c == 0x7f) {
		(void)snprintf(text, sizeof text, "\\x%02x", c); /* four characters */
		add_text(t, text);
	} else {
		if (c == '"' || c == '\\')
			add_text(t, "\\");
		log_text_add(t, (const char *)&c, 1);
	}
}

void log_text_value(struct log_text *t, const char *value, size_t len)
{
	len = strnlen(value, len);
	bool quote = t->len > 0 && t->at[t->len - 1] == '=' && needs_quotes(value, len);
	if (quote)
		add_text(t, "\"");
	for (size_t i = 0; i < len; i++)
		add_escaped(t, (unsigned char)value[i]);
	if (quote)
		add_text(t, "\"");
}

/* One conversion: "%-5.3lu" is flags and widths, modifier, letter. */
struct conversion {
	char text[24]; /* with its letter, for snprintf */
	size_t len;    /* in the format */
	int precision; /* -1: none */
	char size;     /* of the argument: 'i' int, 'l' long, 'j' long long, 'z' size_t */
	char letter;
};

static struct conversion read_conversion(const char *at, va_list *args)
{
	struct conversion c = {.len = 1, .precision = -1, .size = 'i'};
	size_t n = 0;
	bool after_dot = false;
	c.text[n++] = '%';
	for (; at[c.len] && strchr("-+ #0123456789.*", at[c.len]); c.len++) {
		char star[12];
		const char *part = at + c.len;
		size_t part_len = 1;
		if (*part == '*') {
			int width = va_arg(*args, int);
			part_len = (size_t)snprintf(star, sizeof star, "%d", width);
			part = star;
			if (after_dot)
				c.precision = width;
		} else if (*part == '.') {
			after_dot = true;
			c.precision = 0;
		} else if (after_dot && *part >= '0' && *part <= '9' && c.precision < 1000000) {
			c.precision = c.precision * 10 + (*part - '0');
		}
		if (n + part_len < sizeof c.text - 4) {
			memcpy(c.text + n, part, part_len);
			n += part_len;
		}
	}
	for (; at[c.len] && strchr("hlzjt", at[c.len]); c.len++) {
		if (at[c.len] == 'l')
			c.size = c.size == 'l' ? 'j' : 'l';
		else if (at[c.len] != 'h')
			c.size = at[c.len] == 'z' ? 'z' : 'j';
	}
	c.letter = at[c.len];
	if (c.letter)
		c.len++;
	/* Integers are widened to 64 bits before they are printed. */
	if (c.letter && strchr("diuxXo", c.letter))
		c.text[n++] = 'j';
	c.text[n] = c.letter;
	return c;
}

static void add_printed(struct log_text *t, const char *text, int len, size_t size)
{
	if (len > 0)
		log_text_add(t, text, (size_t)len < size ? (size_t)len : size - 1);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* built from a literal that gcc has checked  \
						      */

static void add_signed(struct log_text *t, const struct conversion *c, intmax_t value)
{
	char text[64] = "";
	add_printed(t, text, snprintf(text, sizeof text, c->text, value), sizeof text);
}

static void add_unsigned(struct log_text *t, const struct conversion *c, uintmax_t value)
{
	char text[64] = "";
	add_printed(t, text, snprintf(text, sizeof text, c->text, value), sizeof text);
}

static void add_double(struct log_text *t, const struct conversion *c, double value)
{
	char text[64] = "";
	add_printed(t, text, snprintf(text, sizeof text, c->text, value), sizeof text);
}

#pragma GCC diagnostic pop

static void add_pointer(struct log_text *t, const void *value)
{
	char text[32] = "";
	int len = snprintf(text, sizeof text, "%p", value);
	add_printed(t, text, len, sizeof text);
}

static intmax_t take_signed(char size, va_list *args)
{
	if (size == 'i')
		return va_arg(*args, int);
	if (size == 'l')
		return va_arg(*args, long);
	return size == 'z' ? (intmax_t)va_arg(*args, ssize_t) : (intmax_t)va_arg(*args, long long);
}

static uintmax_t take_unsigned(char size, va_list *args)
{
	if (size == 'i')
		return va_arg(*args, unsigned);
	if (size == 'l')
		return va_arg(*args, unsigned long);
	return size == 'z' ? va_arg(*args, size_t) : va_arg(*args, unsigned long long);
}

static void add_conversion(struct log_text *t, const struct conversion *c, va_list *args)
{
	switch (c->letter) {
	case 's': {
		const char *value = va_arg(*args, const char *);
		log_text_value(t, value ? value : "(null)",
			c->precision < 0 ? SIZE_MAX / 2 : (size_t)c->precision);
		break;
	}
	case 'd':
	case 'i':
		add_signed(t, c, take_signed(c->size, args));
		break;
	case 'u':
	case 'x':
	case 'X':
	case 'o':
		add_unsigned(t, c, take_unsigned(c->size, args));
		break;
	case 'c':
		add_escaped(t, (unsigned char)va_arg(*args, int));
		break;
	case 'p':
		add_pointer(t, va_arg(*args, void *));
		break;
	case '%':
		add_text(t, "%");
		break;
	default:
		add_double(t, c, va_arg(*args, double));
	}
}

void log_text_format(struct log_text *t, const char *format, va_list args)
{
	va_list rest;
	va_copy(rest, args);
	while (*format) {
		size_t plain = strcspn(format, "%");
		log_text_add(t, format, plain);
		format += plain;
		if (*format == '%') {
			struct conversion c = read_conversion(format, &rest);
			add_conversion(t, &c, &rest);
			format += c.len;
		}
	}
	va_end(rest);
}
