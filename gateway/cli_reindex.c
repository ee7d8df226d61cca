/* coppice reindex: the index of all histories made anew, while no gateway runs. */
#include <limits.h>
#include <stdio.h>

#include "gateway/cli.h"
#include "history/history.h"

static int reindex(const struct config *config)
{
	char folder[PATH_MAX];
	struct history_counts counts;
	struct log_sink sink = {.level = LOG_WARN};
	struct log log;
	struct err err;
	log_init(&log, &sink);
	int n = snprintf(folder, sizeof folder, "%s/history", config->data_dir);
	int status = n < 0 || (size_t)n >= sizeof folder
			     ? err_set(&err, E_INVALID, "data_dir is too long")
			     : histories_reindex(folder, &log, &counts, &err);
	if (status == E_UNAVAILABLE)
		(void)err_set(&err, status,
			"a gateway has the data folder %s: end it first; it makes its index anew "
			"by "
			"itself, at each start",
			config->data_dir); /* returns what is known */
	if (status == E_NOT_FOUND)
		(void)err_set(&err, status, "there are no histories in %s", folder); /* as above */
	if (status != 0)
		return cli_fail(&err);
	printf("%llu histories, %llu executions\n", (unsigned long long)counts.histories,
		(unsigned long long)counts.nodes);
	return CLI_OK;
}

static int run(int argc, char **argv)
{
	struct config config;
	int status = cli_config(&config, argc, argv);
	if (status != CLI_OK)
		return status;
	status = reindex(&config);
	config_done(&config);
	return status;
}

const struct command command_reindex = {
	.name = "reindex",
	.about = "make the index of all histories anew from their repositories",
	.usage = "  While no gateway runs with the data folder.\n",
	.takes_options = true,
	.run = run,
};
