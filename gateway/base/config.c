#include "gateway/base/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/config_parts.h"
#include "gateway/base/ini_file.h"

enum option_index {
#define OPTION(name, ...) OPTION_##name,
#include "gateway/base/options.def"
#undef OPTION
	OPTIONS
};

static const struct option_row option_rows[OPTIONS] = {
#define OPTION(name, type, standard, min, max, help)                                               \
	{#name, VALUE_##type, offsetof(struct config, name), standard, min, max, help},
#include "gateway/base/options.def"
#undef OPTION
};

/* What one source (file, environment, command line) gave, as text. */
struct given {
	const char *source; /* for sentences */
	char *text[OPTIONS];
};

static void given_done(struct given *g)
{
	for (unsigned i = 0; i < OPTIONS; i++)
		free(g->text[i]);
}

/* A list that is given again grows; anything else is replaced. */
static void given_put(struct given *g, unsigned i, const char *text)
{
	char *joined = NULL;
	if (option_rows[i].type == VALUE_LIST && g->text[i] && *g->text[i] && *text) {
		size_t size = strlen(g->text[i]) + strlen(text) + 2;
		joined = xcalloc(1, size);
		(void)snprintf(joined, size, "%s,%s", g->text[i], text); /* it fits */
	}
	free(g->text[i]);
	g->text[i] = joined ? joined : xstrdup(text);
}

static unsigned option_find(const char *name)
{
	for (unsigned i = 0; i < OPTIONS; i++)
		if (strcmp(option_rows[i].name, name) == 0)
			return i;
	return OPTIONS;
}

static void dashed(const char *name, char ret_text[OPTION_NAME_SIZE])
{
	(void)copy_text(ret_text, OPTION_NAME_SIZE, name, strlen(name)); /* rows are short */
	for (char *c = ret_text; *c; c++)
		if (*c == '_')
			*c = '-';
}

/* Only the name is repeated: a value may be a secret that was meant for another command. */
static int on_bad_argument(int letter, const char *argument, struct err *err)
{
	int len = (int)strcspn(argument, "=");
	if (letter == ':')
		return err_set(err, E_INVALID, "%.*s needs a value", len, argument);
	return err_set(
		err, E_INVALID, "%.*s is not an option here; --help lists all", len, argument);
}

/* getopt_long permutes argv and keeps its place in globals of its own; optind = 0 starts it anew.
 */
static int read_arguments(struct given *g, int argc, char **argv, struct err *err)
{
	char names[OPTIONS][OPTION_NAME_SIZE];
	struct option options[OPTIONS + 1] = {0};
	for (unsigned i = 0; i < OPTIONS; i++) {
		bool flag = option_rows[i].type == VALUE_FLAG;
		dashed(option_rows[i].name, names[i]);
		options[i] = (struct option){
			names[i], flag ? optional_argument : required_argument, NULL, 0};
	}
	optind = 0;
	opterr = 0;
	int letter, index = 0;
	while ((letter = getopt_long(argc, argv, ":", options, &index)) != -1) {
		if (letter != 0)
			return on_bad_argument(letter, argv[optind - 1], err);
		/* getopt takes unique beginnings too: --token would be --token-file. */
		const char *argument =
			argv[optind - (optarg && optarg == argv[optind - 1] ? 2 : 1)];
		if (strcspn(argument + 2, "=") != strlen(names[index]))
			return on_bad_argument('?', argument, err);
		given_put(g, (unsigned)index, optarg ? optarg : "true");
	}
	if (optind < argc)
		return err_set(err, E_INVALID,
			"unexpected argument '%s' (a flag's value is written --flag=false)",
			argv[optind]);
	return 0;
}

/* An empty variable counts as absent, as is usual for variables. */
static void read_environment(struct given *g, char **variables)
{
	for (unsigned i = 0; i < OPTIONS; i++) {
		char name[OPTION_NAME_SIZE + 8] = "COPPICE_";
		for (size_t k = 0; option_rows[i].name[k]; k++)
			name[8 + k] = (char)toupper((unsigned char)option_rows[i].name[k]);
		const char *value = config_environ(variables, name);
		if (*value)
			given_put(g, i, value);
	}
}

struct file_reader {
	struct given *given;
	struct config *config;
};

static int on_file_row(
	void *data, const char *section, const char *name, const char *value, struct err *err)
{
	struct file_reader *r = data;
	if (strncmp(section, "kernelspec ", 11) == 0)
		return config_spec_put(r->config, section + 11, name, value, err);
	if (strcmp(section, "serve") != 0)
		return err_set(err, E_INVALID,
			"section [%s] is not known; allowed are [serve] and [kernelspec NAME]",
			section);
	unsigned i = option_find(name);
	if (i == OPTIONS || i == OPTION_config)
		return err_set(err, E_INVALID, "'%s' is not an option of [serve]", name);
	given_put(r->given, i, value);
	return 0;
}

static int read_config_file(
	struct given *g, struct config *config, const char *path, struct err *err)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return err_set(err, E_INVALID, "configuration file %s: %s", path, strerror(errno));
	struct file_reader reader = {g, config};
	int status = ini_file_read(file, path, on_file_row, &reader, err);
	fclose(file);
	return status != 0 ? status : config_specs_check(config, path, err);
}

/* The heaviest source that has it, else the default. */
static int choose(struct config *config, const struct given *given, size_t n, struct err *err)
{
	for (unsigned i = 0; i < OPTIONS; i++) {
		const char *text = option_rows[i].standard, *source = "default";
		for (size_t k = 0; k < n; k++) {
			if (given[k].text[i]) {
				text = given[k].text[i];
				source = given[k].source;
				break;
			}
		}
		int status = config_value_set(config, &option_rows[i], text, err);
		if (status != 0) {
			err_wrap(err, "%s", source);
			return status;
		}
	}
	return 0;
}

static int read_all(struct config *config, struct given given[3], int argc, char **argv,
	char **variables, struct err *err)
{
	struct given *line = &given[0], *environment = &given[1], *file = &given[2];
	int status = read_arguments(line, argc, argv, err);
	if (status != 0)
		return status;
	read_environment(environment, variables);
	const char *path = line->text[OPTION_config] ? line->text[OPTION_config]
						     : environment->text[OPTION_config];
	if (path && *path)
		status = read_config_file(file, config, path, err);
	if (status == 0)
		status = choose(config, given, 3, err);
	if (status == 0)
		status = config_complete(config, variables, err);
	return status;
}

int config_read(struct config *config, int argc, char **argv, char **variables, struct err *err)
{
	struct config made = {0};
	struct given given[3] = {{.source = "command line"}, {.source = "environment"},
		{.source = "configuration file"}};
	int status = read_all(&made, given, argc, argv, variables, err);
	for (unsigned i = 0; i < ARRAY_LEN(given); i++)
		given_done(&given[i]);
	if (status == 0)
		*config = made;
	else
		config_done(&made);
	return status;
}

void config_done(struct config *config)
{
	for (unsigned i = 0; i < OPTIONS; i++)
		config_value_done(config, &option_rows[i]);
	config_specs_done(config);
	*config = (struct config){0};
}

void config_help(void)
{
	for (unsigned i = 0; i < OPTIONS; i++) {
		const struct option_row *row = &option_rows[i];
		char name[OPTION_NAME_SIZE];
		dashed(row->name, name);
		printf("  --%-22s %s", name, row->help);
		if (*row->standard)
			printf(" (default %s", row->standard);
		if (*row->min || *row->max)
			printf("%s%s to %s", *row->standard ? "; " : " (", row->min, row->max);
		printf("%s\n", *row->standard || *row->min || *row->max ? ")" : "");
	}
}

bool config_list_next(const char **at, char *item, size_t size)
{
	while (**at) {
		const char *from = *at + strspn(*at, " \t,");
		size_t len = strcspn(from, ",");
		*at = from + len;
		while (len > 0 && isspace((unsigned char)from[len - 1]))
			len--;
		/* An item that does not fit is skipped, never cut: a cut path is another path. */
		if (len > 0 && copy_text(item, size, from, len))
			return true;
	}
	return false;
}
