/* coppice COMMAND: picks the command. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/json_tree.h"
#include "gateway/cli.h"
#include "gateway/gateway.h"

static int run_version(int argc, char **argv)
{
	(void)argc; /* a command's function is called with both */
	(void)argv;
	printf("coppice %s\n", COPPICE_VERSION);
	return CLI_OK;
}

static int run_help(int argc, char **argv);

static const struct command command_version = {
	"version", "print the version", "", false, run_version};
static const struct command command_help = {"help", "this text", "", false, run_help};

static const struct command *const commands[] = {&command_serve, &command_status, &command_doctor,
	&command_log, &command_show, &command_diff, &command_export, &command_import, &command_push,
	&command_checkout, &command_undo, &command_branch, &command_release, &command_gc,
	&command_reindex, &command_backup, &command_restore, &command_forget, &command_version,
	&command_help};

static int run_help(int argc, char **argv)
{
	(void)argc; /* a command's function is called with both */
	(void)argv;
	printf("coppice: a kernel gateway. Usage: coppice COMMAND [OPTION...]\n\n");
	for (unsigned i = 0; i < ARRAY_LEN(commands); i++)
		printf("  %-8s %s\n", commands[i]->name, commands[i]->about);
	printf("\n`coppice COMMAND --help` lists the options of a command.\n"
	       "Exit codes: 0 good, 1 failed, 2 wrong use.\n");
	return CLI_OK;
}

static int command_usage(const struct command *c)
{
	printf("coppice %s: %s\n", c->name, c->about);
	if (*c->usage)
		printf("\n%s", c->usage);
	if (c->takes_options) {
		printf("\nOptions; each is also a row of [serve] in the file that --config names "
		       "(with _ "
		       "for -)\nand an environment variable COPPICE_NAME. The command line weighs "
		       "most, "
		       "then the\nenvironment, then the file.\n");
		config_help();
	}
	return CLI_OK;
}

static const struct command *find(const char *name)
{
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return &command_help;
	if (strcmp(name, "--version") == 0)
		return &command_version;
	for (unsigned i = 0; i < ARRAY_LEN(commands); i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		(void)run_help(0, NULL); /* always good */
		return CLI_WRONG_USE;
	}
	const struct command *c = find(argv[1]);
	if (!c) {
		fprintf(stderr, "coppice: there is no command '%s'; `coppice help` lists them\n",
			argv[1]);
		return CLI_WRONG_USE;
	}
	signal(SIGPIPE, SIG_IGN);
	json_tree_init();
	argc--;
	argv++;
	if (cli_take_flag(&argc, argv, "--help") || cli_take_flag(&argc, argv, "-h"))
		return c == &command_help ? run_help(0, NULL) : command_usage(c);
	if (!c->takes_options && argc > 1) {
		fprintf(stderr, "coppice %s: unexpected argument '%s'\n", c->name, argv[1]);
		return CLI_WRONG_USE;
	}
	return c->run(argc, argv);
}
