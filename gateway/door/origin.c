#include "gateway/door/origin.h"

#include <string.h>
#include <strings.h>

#define PATTERN_MAX 4096
#define ORIGIN_MAX  512

int origins_init(struct origins *o, const struct config *config, struct err *err)
{
	*o = (struct origins){.list = config->allow_origin ? config->allow_origin : ""};
	const char *pattern = config->allow_origin_pattern;
	if (!pattern || pattern[0] == '\0')
		return 0;
	AUTO(buf_done) struct buf whole;
	buf_init(&whole, PATTERN_MAX);
	int status = buf_addf(&whole, "^(%s)$", pattern);
	if (status != 0)
		return buf_check(&whole, "allow_origin_pattern", err);
	int code = regcomp(&o->pattern, (const char *)whole.data, REG_EXTENDED | REG_NOSUB);
	if (code != 0) {
		char text[128];
		(void)regerror(code, &o->pattern, text, sizeof text); /* cut to fit */
		return err_set(err, E_INVALID, "allow_origin_pattern: %s", text);
	}
	o->has_pattern = true;
	return 0;
}

void origins_done(struct origins *o)
{
	if (o->has_pattern)
		regfree(&o->pattern);
	o->has_pattern = false;
}

bool origins_configured(const struct origins *o)
{
	return o->list[0] != '\0' || o->has_pattern;
}

bool origins_allow(const struct origins *o, const char *origin)
{
	char item[ORIGIN_MAX];
	const char *at = o->list;
	if (strlen(origin) >= ORIGIN_MAX)
		return false;
	while (config_list_next(&at, item, sizeof item))
		if (strcmp(item, "*") == 0 || strcasecmp(item, origin) == 0)
			return true;
	return o->has_pattern && regexec(&o->pattern, origin, 0, NULL, 0) == 0;
}
