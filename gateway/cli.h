/* The commands of the program: one row each in main.c, one file each. Main thread. */
#ifndef COPPICE_CLI_H
#define COPPICE_CLI_H

#include "gateway/base/buf.h"
#include "gateway/base/config.h"
#include "gateway/base/err.h"

struct cJSON;

/* What the program ends with. */
enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_WRONG_USE = 2 };

struct command {
	const char *name;
	const char *about;  /* one line */
	const char *usage;  /* options of its own, for COMMAND --help; "" if none */
	bool takes_options; /* the rows of options.def */
	/* argv[0] is the command's name. */
	int (*run)(int argc, char **argv);
};

extern const struct command command_serve, command_status, command_doctor, command_log;
extern const struct command command_forget;
extern const struct command command_gc, command_reindex, command_backup, command_restore;
extern const struct command command_show, command_diff, command_export, command_import;
extern const struct command command_push, command_checkout, command_undo, command_release;
extern const struct command command_branch;

/* Options that only one command has are taken out of argv before config_read sees it. */
bool cli_take_flag(int *argc, char **argv, const char *name);
/* "--name value" or "--name=value"; NULL if absent, "" if its value is missing. */
const char *cli_take_value(int *argc, char **argv, const char *name);
/* The first argument if it is no option; NULL if there is none. */
const char *cli_take_word(int *argc, char **argv);
/* config_read with the process's environment; on a fault says it and returns CLI_WRONG_USE. */
int cli_config(struct config *config, int argc, char **argv);
/* Prints "coppice: sentence" to stderr; returns CLI_FAILED. */
int cli_fail(const struct err *err);

/* ---- the running server, as DATA_DIR/server.json tells ---- */
struct cli_server {
	char url[1024]; /* without a slash at its end */
	char token[256];
	char ca_file[4096]; /* its certificate, or "" */
	bool any_name;	    /* which need not name the URL's host */
	long pid;	    /* 0: not known */
};

int server_file_write(const struct config *config, const char *url, struct err *err);
/* If it is this process's. */
void server_file_remove(const struct config *config);
/* url and token override the file's when they are not NULL. E_NOT_FOUND: no server is known. */
int cli_server_find(const struct config *config, const char *url, const char *token,
	struct cli_server *ret, struct err *err);

/* ---- asking over HTTP, on a loop of its own that runs until all are answered ---- */
struct cli_question {
	const char *unix_socket; /* NULL: TCP */
	const char *url;
	const char *token;   /* NULL: none */
	const char *method;  /* NULL: GET */
	const char *ca_file; /* as in struct http_call */
	bool any_name;
	const char *body;    /* JSON that is sent along; NULL: none */
	uint64_t timeout_ms; /* 0: the usual */
	int status;	     /* HTTP; 0: no answer, then err says why */
	struct cJSON *tree;  /* NULL unless JSON came */
	struct err err;
};

int cli_ask(struct cli_question *questions, size_t n, struct err *err);
void cli_questions_done(struct cli_question *questions, size_t n);
/* Asks the server for each path; urls are made here. questions[i] answers paths[i]. */
/* A question's method, body and timeout_ms that are set before the call count. */
int cli_ask_server(const struct cli_server *server, const char *const *paths, size_t n,
	struct cli_question *questions, struct err *err);
/* Asks for one, which must be answered with 200 and JSON; err has what the server said else. */
int cli_answer(
	const struct cli_server *server, const char *path, struct cli_question *q, struct err *err);
/* A name as a segment of a path. */
bool cli_add_name(struct buf *path, const char *name);

#endif
