#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/cli.h"

static void drop(int *argc, char **argv, int at, int n)
{
	for (int i = at; i + n <= *argc; i++)
		argv[i] = argv[i + n]; /* the NULL at the end too */
	*argc -= n;
}

bool cli_take_flag(int *argc, char **argv, const char *name)
{
	bool found = false;
	for (int i = 1; i < *argc;) {
		if (strcmp(argv[i], name) != 0) {
			i++;
			continue;
		}
		drop(argc, argv, i, 1);
		found = true;
	}
	return found;
}

const char *cli_take_value(int *argc, char **argv, const char *name)
{
	size_t len = strlen(name);
	for (int i = 1; i < *argc; i++) {
		if (strncmp(argv[i], name, len) != 0)
			continue;
		if (argv[i][len] == '=') {
			const char *value = argv[i] + len + 1;
			drop(argc, argv, i, 1);
			return value;
		}
		if (argv[i][len] == '\0') {
			const char *value = i + 1 < *argc ? argv[i + 1] : "";
			drop(argc, argv, i, i + 1 < *argc ? 2 : 1);
			return value;
		}
	}
	return NULL;
}

int cli_fail(const struct err *err)
{
	fprintf(stderr, "coppice: %s\n", err->text);
	return CLI_FAILED;
}

int cli_config(struct config *config, int argc, char **argv)
{
	struct err err;
	if (config_read(config, argc, argv, environ, &err) == 0)
		return CLI_OK;
	(void)cli_fail(&err); /* wrong use, not a failure */
	return CLI_WRONG_USE;
}

bool cli_add_name(struct buf *path, const char *name)
{
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;
		bool plain = strchr("-._~", c) || (c >= '0' && c <= '9') ||
			     ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
		(void)buf_addf(path, plain ? "%c" : "%%%02X", c);
	}
	return !path->failed;
}

const char *cli_take_word(int *argc, char **argv)
{
	const char *word = *argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
	if (word)
		drop(argc, argv, 1, 1);
	return word;
}
