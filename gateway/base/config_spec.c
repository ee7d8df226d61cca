#include "gateway/base/config_parts.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#define SPECS_MAX 256

static const struct spec_key {
	const char *name;
	size_t offset;
} spec_keys[] = {
	{"image", offsetof(struct config_spec, image)},
	{"argv", offsetof(struct config_spec, argv)},
	{"display_name", offsetof(struct config_spec, display_name)},
	{"language", offsetof(struct config_spec, language)},
	{"interrupt_mode", offsetof(struct config_spec, interrupt_mode)},
};

static char **spec_member(struct config_spec *spec, size_t offset)
{
	return (char **)(void *)((char *)spec + offset);
}

/* A kernelspec's name is part of URLs, labels and paths. */
static bool is_spec_name(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	return *name && *name != '.' && strspn(name, letters) == strlen(name);
}

static struct config_spec *spec_of(struct config *config, const char *name)
{
	for (size_t i = 0; i < config->n_specs; i++)
		if (strcmp(config->specs[i].name, name) == 0)
			return &config->specs[i];
	if (config->n_specs == SPECS_MAX)
		return NULL;
	struct config_spec *grown = xcalloc(config->n_specs + 1, sizeof *grown);
	if (config->n_specs > 0)
		memcpy(grown, config->specs, config->n_specs * sizeof *grown);
	free(config->specs);
	config->specs = grown;
	struct config_spec *spec = &config->specs[config->n_specs++];
	spec->name = xstrdup(name);
	return spec;
}

/* A value that comes again continues the first: argv may be longer than a line. */
static void append(char **member, const char *value)
{
	size_t size = (*member ? strlen(*member) : 0) + strlen(value) + 1;
	char *joined = xcalloc(1, size);
	(void)snprintf(joined, size, "%s%s", *member ? *member : "", value); /* it fits */
	free(*member);
	*member = joined;
}

int config_spec_put(struct config *config, const char *name, const char *key, const char *value,
	struct err *err)
{
	if (!is_spec_name(name))
		return err_set(err, E_INVALID,
			"a kernelspec's name is made of letters, digits, '.', '_' and '-', not "
			"'%s'",
			name);
	for (unsigned i = 0; i < ARRAY_LEN(spec_keys); i++) {
		if (strcmp(spec_keys[i].name, key) != 0)
			continue;
		struct config_spec *spec = spec_of(config, name);
		if (!spec)
			return err_set(err, E_INVALID, "more than %d kernelspecs", SPECS_MAX);
		append(spec_member(spec, spec_keys[i].offset), value);
		return 0;
	}
	return err_set(err, E_INVALID,
		"'%s' is no setting of a kernelspec (image, argv, display_name, language, "
		"interrupt_mode)",
		key);
}

static bool is_argv(const char *text)
{
	cJSON *tree = cJSON_Parse(text);
	bool good = cJSON_IsArray(tree) && cJSON_GetArraySize(tree) > 0;
	const cJSON *item;
	cJSON_ArrayForEach (item, tree)
		good = good && cJSON_IsString(item);
	cJSON_Delete(tree);
	return good;
}

static void set_default(char **member, const char *value)
{
	if (!*member)
		*member = xstrdup(value);
}

/* A foreign kernel (one with argv) is interrupted by a signal unless it says that it takes
 * messages, as Jupyter has it. */
static int spec_check(struct config_spec *s, struct err *err)
{
	set_default(&s->argv, "");
	set_default(&s->display_name, s->name);
	set_default(&s->language, "python");
	set_default(&s->interrupt_mode, *s->argv ? "signal" : "message");
	if (!s->image || !*s->image)
		return err_set(err, E_INVALID, "[kernelspec %s] needs an image", s->name);
	if (*s->argv && !is_argv(s->argv))
		return err_set(err, E_INVALID,
			"[kernelspec %s] argv must be a JSON array of strings, not %.200s", s->name,
			s->argv);
	if (strcmp(s->interrupt_mode, "message") != 0 && strcmp(s->interrupt_mode, "signal") != 0)
		return err_set(err, E_INVALID,
			"[kernelspec %s] interrupt_mode is message or signal, not '%.100s'",
			s->name, s->interrupt_mode);
	return 0;
}

int config_specs_check(struct config *config, const char *path, struct err *err)
{
	for (size_t i = 0; i < config->n_specs; i++) {
		int status = spec_check(&config->specs[i], err);
		if (status != 0) {
			err_wrap(err, "%s", path);
			return status;
		}
	}
	return 0;
}

void config_specs_done(struct config *config)
{
	for (size_t i = 0; i < config->n_specs; i++) {
		free(config->specs[i].name);
		for (unsigned k = 0; k < ARRAY_LEN(spec_keys); k++)
			free(*spec_member(&config->specs[i], spec_keys[k].offset));
	}
	free(config->specs);
}
