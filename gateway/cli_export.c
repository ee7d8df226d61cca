/* coppice export: the line that leads to a node as a notebook or a script. coppice import: one of
 * those as a history. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "gateway/base/crypto.h"
#include "gateway/base/file.h"
#include "gateway/cli_history.h"
#include "gateway/cli_plain.h"

#define FILE_MAX (64u << 20)

struct export_asked {
	struct cli_asked asked;
	const char *node, *file, *format;
	bool renumber, silent, metadata;
};

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n >= m && strcmp(text + n - m, end) == 0;
}

static void add_query(const struct export_asked *e, struct buf *path)
{
	const char *format = e->format;
	if (!format)
		format = e->file && ends_with(e->file, ".py") ? "py" : "ipynb";
	(void)buf_add_text(path, "/export?format="); /* latched, as below */
	(void)cli_add_name(path, format);
	if (e->node) {
		(void)buf_add_text(path, "&node=");
		(void)cli_add_name(path, e->node);
	}
	if (e->renumber)
		(void)buf_add_text(path, "&counts=renumbered");
	if (e->silent)
		(void)buf_add_text(path, "&silent=true");
	if (e->metadata)
		(void)buf_add_text(path, "&metadata=true");
}

/* On a terminal nothing of it steers. */
static int put_on_terminal(const struct cli_fetch *f, struct err *err)
{
	AUTO(buf_done) struct buf plain;
	buf_init(&plain, 2 * f->len + 16);
	cli_plain_add(&plain, f->text, f->len); /* latched */
	int status = buf_check(&plain, "the file", err);
	if (status == 0)
		printf("%.*s", (int)plain.len, plain.data ? (const char *)plain.data : "");
	return status;
}

static int put_out(const char *file, const struct cli_fetch *f, struct err *err)
{
	if (!file && isatty(STDOUT_FILENO))
		return put_on_terminal(f, err);
	FILE *out = file ? fopen(file, "we") : stdout;
	if (!out)
		return err_set(err, E_IO, "%s cannot be written: %m", file);
	bool fine = fwrite(f->text, 1, f->len, out) == f->len;
	fine = (file ? fclose(out) : fflush(out)) == 0 && fine;
	return fine ? 0 : err_set(err, E_IO, "%s cannot be written: %m", file ? file : "the file");
}

static int export_it(struct export_asked *e, struct err *err)
{
	AUTO(buf_done) struct buf path;
	struct cli_server server;
	buf_init(&path, 8192);
	int status = cli_history_path(&e->asked, &server, &path, err);
	add_query(e, &path);
	if (status == 0)
		status = buf_check(&path, "the question", err);
	if (status != 0)
		return status;
	struct cli_fetch f = {.path = (const char *)path.data};
	status = cli_fetch(&server, &f, err);
	if (status == 0)
		status = put_out(e->file, &f, err);
	cli_fetch_done(&f);
	return status;
}

static int run_export(int argc, char **argv)
{
	struct err err;
	struct export_asked e = {.file = cli_take_value(&argc, argv, "-o"),
		.node = cli_take_value(&argc, argv, "--node"),
		.format = cli_take_value(&argc, argv, "--format"),
		.renumber = cli_take_flag(&argc, argv, "--renumber"),
		.silent = cli_take_flag(&argc, argv, "--silent"),
		.metadata = cli_take_flag(&argc, argv, "--metadata")};
	int status = cli_asked_read(&e.asked, argc, argv, 1);
	if (status != CLI_OK)
		return status;
	if (e.asked.n_words > 0)
		e.asked.history = e.asked.words[0];
	status = export_it(&e, &err);
	config_done(&e.asked.config);
	return status == 0 ? CLI_OK : cli_fail(&err);
}

const struct command command_export = {
	.name = "export",
	.about = "a history as a notebook: coppice export [HISTORY] [-o FILE]",
	.usage = "  HISTORY                 its id or name (default: the one that was worked in "
		 "last)\n"
		 "  -o FILE                 where it goes (default: printed)\n"
		 "  --node NODE             up to there (default: HEAD)\n"
		 "  --format ipynb|py       a notebook, or a script with # %% (default: by FILE's "
		 "ending)\n"
		 "  --renumber              executed cells are counted from 1\n"
		 "  --silent                silent executions too\n"
		 "  --metadata              status and times in each cell's "
		 "metadata\n" CLI_SERVER_USAGE,
	.takes_options = true,
	.run = run_export,
};

/* ---- import ---- */

/* "walks" of "/home/ada/walks.ipynb". */
static void base_name(const char *file, char ret[200])
{
	const char *slash = strrchr(file, '/');
	const char *base = slash ? slash + 1 : file;
	size_t len = strlen(base);
	if (ends_with(base, ".ipynb"))
		len -= 6;
	else if (ends_with(base, ".py"))
		len -= 3;
	if (!copy_text(ret, 200, base, len) || !len)
		(void)snprintf(ret, 200, "imported");
}

static int read_text(const char *file, struct buf *ret, struct err *err)
{
	int status = file_read(file, ret, err);
	if (status == 0 && ret->len > 0 && memchr(ret->data, '\0', ret->len))
		status = err_set(
			err, E_INVALID, "%s holds a NUL: it is neither notebook nor script", file);
	return status;
}

static int import_it(struct cli_asked *a, const char *name, struct cli_fetch *f, struct err *err)
{
	AUTO(buf_done) struct buf text, path;
	struct cli_server server;
	char base[200];
	buf_init(&text, FILE_MAX);
	buf_init(&path, 4096);
	base_name(a->words[0], base);
	int status = crypto_init(err);
	if (status == 0)
		status = read_text(a->words[0], &text, err);
	if (status == 0)
		status = cli_server_find(&a->config, a->url, a->token, &server, err);
	(void)buf_add_text(&path, "/history/import?name="); /* latched, as below */
	(void)cli_add_name(&path, name ? name : base);
	if (ends_with(a->words[0], ".ipynb") || ends_with(a->words[0], ".py"))
		(void)buf_addf(&path, "&format=%s", ends_with(a->words[0], ".py") ? "py" : "ipynb");
	if (status == 0)
		status = buf_check(&path, "the name", err);
	if (status != 0)
		return status;
	*f = (struct cli_fetch){.method = "POST",
		.path = (const char *)path.data,
		.body = text.data ? (const char *)text.data : ""};
	status = cli_fetch(&server, f, err);
	f->path = f->body = NULL;
	return status;
}

static void tell(const struct cli_asked *a, struct cli_fetch *f)
{
	cJSON *tree = cli_fetch_tree(f);
	const cJSON *branch =
		cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(tree, "branches"), 0);
	if (a->json)
		printf("%s\n", f->text);
	else
		printf("history %s, node %.12s\n", cli_text_of(tree, "id"),
			cli_text_of(branch, "node"));
	cJSON_Delete(tree);
}

static int run_import(int argc, char **argv)
{
	struct cli_asked a;
	struct cli_fetch f = {0};
	struct err err;
	const char *name = cli_take_value(&argc, argv, "--name");
	int status = cli_asked_read(&a, argc, argv, 1);
	if (status != CLI_OK)
		return status;
	if (a.n_words == 0) {
		fprintf(stderr, "coppice import: which file? coppice import FILE\n");
		config_done(&a.config);
		return CLI_WRONG_USE;
	}
	status = import_it(&a, name, &f, &err);
	if (status == 0)
		tell(&a, &f);
	cli_fetch_done(&f);
	config_done(&a.config);
	return status == 0 ? CLI_OK : cli_fail(&err);
}

const struct command command_import = {
	.name = "import",
	.about = "a notebook or script as a history: coppice import FILE",
	.usage = "  FILE                    an .ipynb, or a script with # %%\n"
		 "  --name NAME             what the history is called (default: the file's name)\n"
		 "  --json                  the history as JSON\n" CLI_SERVER_USAGE,
	.takes_options = true,
	.run = run_import,
};
