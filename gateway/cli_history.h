/* What the commands about histories share: one request with any body and answer, names in paths,
 * the history that is meant if none is named. Main thread. */
#ifndef COPPICE_CLI_HISTORY_H
#define COPPICE_CLI_HISTORY_H

#include "gateway/base/buf.h"
#include "gateway/cli.h"

/* Options that all of them have. */
struct cli_asked {
	const char *url, *token;
	const char *history; /* NULL: the one that was worked in last */
	bool json;
	const char *words[2]; /* what stands there beside options */
	int n_words;
	struct config config;
};

/* Takes --url, --token, --history, --json and up to max words out of argv, the rest is the
 * configuration's. CLI_OK: config_done() is owed. */
int cli_asked_read(struct cli_asked *a, int argc, char **argv, int max_words);

struct cli_fetch {
	const char *method; /* NULL: GET */
	const char *path;   /* "/history/..." */
	const char *body;   /* NULL: none */
	/* What came; cli_fetch_done(). */
	int status;
	char *text; /* NUL-ended */
	size_t len;
};

/* E_*: no answer, or not the one that was asked for; err says it. */
int cli_fetch(const struct cli_server *server, struct cli_fetch *fetch, struct err *err);
void cli_fetch_done(struct cli_fetch *fetch);
/* What came as a tree, NULL if it is no JSON. A NUL in a text, which would end it, is U+FFFD. */
struct cJSON *cli_fetch_tree(struct cli_fetch *fetch);

/* Finds the server, and adds "/history/ID" of the history that is meant. */
int cli_history_path(
	struct cli_asked *a, struct cli_server *ret_server, struct buf *ret_path, struct err *err);

/* A member of an answer, "" if it is no text. */
const char *cli_text_of(const struct cJSON *tree, const char *name);

/* A member of the history that was worked in last: "id", "kernel_id"; "" where it has none, or
 * there is no history. */
int cli_newest(const struct cli_server *server, const char *member, char *ret, size_t size,
	struct err *err);

#define CLI_HISTORY_USAGE                                                                          \
	"  --history HISTORY       its id or name (default: the one that was worked in "           \
	"last)\n" CLI_SERVER_USAGE
#define CLI_SERVER_USAGE                                                                           \
	"  --url URL               a gateway elsewhere (default: the one of the data folder)\n"    \
	"  --token SECRET          its token (default: the first of the token file)\n"

#endif
