#include "gateway/base/config_parts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit no_units[] = {{"", 1}, {NULL, 0}};
static const struct unit byte_units[] = {{"", 1}, {"K", INT64_C(1) << 10}, {"M", INT64_C(1) << 20},
	{"G", INT64_C(1) << 30}, {NULL, 0}};
static const struct unit duration_units[] = {
	{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {NULL, 0}};

static const char *const forms[] = {
	[VALUE_TEXT] = "text",
	[VALUE_LIST] = "a comma separated list",
	[VALUE_FLAG] = "true or false",
	[VALUE_COUNT] = "a whole number",
	[VALUE_BYTES] = "a number of bytes such as 512M (K, M, G)",
	[VALUE_DURATION] = "a time such as 500ms, 30s, 10m, 2h, 7d",
	[VALUE_DECIMAL] = "a number such as 0.5",
};

static bool parse_whole(const char *text, const struct unit *units, int64_t *ret_value)
{
	if (*text < '0' || *text > '9')
		return false;
	char *end;
	errno = 0;
	long long number = strtoll(text, &end, 10);
	if (errno != 0)
		return false;
	for (const struct unit *u = units; u->name; u++)
		if (strcmp(end, u->name) == 0)
			return !__builtin_mul_overflow((int64_t)number, u->factor, ret_value);
	return false;
}

static bool parse_decimal(const char *text, double *ret_value)
{
	if (strspn(text, "0123456789.") != strlen(text))
		return false;
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end || !isfinite(value))
		return false;
	*ret_value = value;
	return true;
}

static bool parse_flag(const char *text, bool *ret_value)
{
	static const char *const on[] = {"true", "1", "yes", "on"};
	static const char *const off[] = {"false", "0", "no", "off"};
	for (unsigned i = 0; i < ARRAY_LEN(on); i++) {
		bool is_on = strcmp(text, on[i]) == 0;
		if (is_on || strcmp(text, off[i]) == 0) {
			*ret_value = is_on;
			return true;
		}
	}
	return false;
}

static bool parse_number(enum value_type type, const char *text, int64_t *ret_value)
{
	if (type == VALUE_BYTES)
		return parse_whole(text, byte_units, ret_value);
	if (type == VALUE_DURATION)
		return parse_whole(text, duration_units, ret_value);
	return parse_whole(text, no_units, ret_value);
}

static int bad_value(const struct option_row *row, const char *text, struct err *err)
{
	bool bounds = *row->min || *row->max;
	return err_set(err, E_INVALID, "%s is '%.200s'; it must be %s%s%s%s%s", row->name, text,
		forms[row->type], bounds ? ", from " : "", row->min, bounds ? " to " : "",
		row->max);
}

static int set_number(
	struct config *config, const struct option_row *row, const char *text, struct err *err)
{
	int64_t value, min = INT64_MIN, max = INT64_MAX;
	(void)parse_number(row->type, row->min, &min); /* "" is no bound */
	(void)parse_number(row->type, row->max, &max); /* the same */
	if (!parse_number(row->type, text, &value) || value < min || value > max)
		return bad_value(row, text, err);
	memcpy((char *)config + row->offset, &value, sizeof value);
	return 0;
}

static int set_decimal(
	struct config *config, const struct option_row *row, const char *text, struct err *err)
{
	double value, min = -INFINITY, max = INFINITY;
	(void)parse_decimal(row->min, &min); /* "" is no bound */
	(void)parse_decimal(row->max, &max); /* the same */
	if (!parse_decimal(text, &value) || value < min || value > max)
		return bad_value(row, text, err);
	memcpy((char *)config + row->offset, &value, sizeof value);
	return 0;
}

static int set_flag(
	struct config *config, const struct option_row *row, const char *text, struct err *err)
{
	bool value;
	if (!parse_flag(text, &value))
		return bad_value(row, text, err);
	memcpy((char *)config + row->offset, &value, sizeof value);
	return 0;
}

int config_value_set(
	struct config *config, const struct option_row *row, const char *text, struct err *err)
{
	char *copy;
	switch (row->type) {
	case VALUE_FLAG:
		return set_flag(config, row, text, err);
	case VALUE_DECIMAL:
		return set_decimal(config, row, text, err);
	case VALUE_COUNT:
	case VALUE_BYTES:
	case VALUE_DURATION:
		return set_number(config, row, text, err);
	case VALUE_TEXT:
	case VALUE_LIST:
		break;
	}
	copy = xstrdup(text);
	memcpy((char *)config + row->offset, &copy, sizeof copy);
	return 0;
}

void config_value_done(struct config *config, const struct option_row *row)
{
	char *text;
	if (row->type != VALUE_TEXT && row->type != VALUE_LIST)
		return;
	memcpy(&text, (char *)config + row->offset, sizeof text);
	free(text);
}
