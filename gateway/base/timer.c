/* What the real and the fake clock share. */
#include "gateway/base/clock.h"

#include <ctype.h>
#include <time.h>

void timer_init(struct timer *t, void (*fire)(struct timer *t))
{
	list_init(&t->link);
	t->due_ms = 0;
	t->fire = fire;
}

bool timer_running(const struct timer *t)
{
	return !list_empty((struct list *)&t->link);
}

static char *put_digits(char *at, unsigned value, unsigned n)
{
	for (unsigned i = n; i-- > 0; value /= 10)
		at[i] = (char)('0' + value % 10);
	return at + n;
}

void clock_stamp(int64_t wall_us, char ret_text[CLOCK_STAMP_SIZE])
{
	int64_t seconds = wall_us / 1000000, us = wall_us % 1000000;
	if (us < 0) {
		us += 1000000;
		seconds--;
	}
	time_t when = (time_t)seconds;
	struct tm tm = {.tm_year = 70, .tm_mday = 1};
	(void)gmtime_r(&when, &tm); /* a year that does not fit leaves 1970 */
	char *at = put_digits(ret_text, (unsigned)(tm.tm_year + 1900) % 10000, 4);
	*at++ = '-';
	at = put_digits(at, (unsigned)tm.tm_mon + 1, 2);
	*at++ = '-';
	at = put_digits(at, (unsigned)tm.tm_mday, 2);
	*at++ = 'T';
	at = put_digits(at, (unsigned)tm.tm_hour, 2);
	*at++ = ':';
	at = put_digits(at, (unsigned)tm.tm_min, 2);
	*at++ = ':';
	at = put_digits(at, (unsigned)tm.tm_sec, 2);
	*at++ = '.';
	at = put_digits(at, (unsigned)us, 6);
	*at++ = 'Z';
	*at = '\0';
}

bool clock_stamp_read(const char *text, int64_t *ret_wall_us)
{
	struct tm tm = {0}, zone = {0};
	int64_t us = 0;
	const char *at = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (at && *at == '.') {
		at++;
		for (int64_t unit = 100000; isdigit((unsigned char)*at); at++, unit /= 10)
			us += unit * (*at - '0');
	}
	const char *end = at ? strptime(at, "%z", &zone) : NULL;
	if (!end || *end != '\0')
		return false;
	*ret_wall_us = ((int64_t)timegm(&tm) - zone.tm_gmtoff) * 1000000 + us;
	return true;
}
