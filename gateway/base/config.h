/* The configuration: one row per option in options.def. Order of weight: command line, environment,
 * file, default. Also holds kernelspecs that the file defines ([kernelspec NAME]). Owns its texts.
 */
#ifndef COPPICE_BASE_CONFIG_H
#define COPPICE_BASE_CONFIG_H

#include "base.h"
#include "err.h"

#define OPTION_TYPE_TEXT     char *
#define OPTION_TYPE_LIST     char *
#define OPTION_TYPE_FLAG     bool
#define OPTION_TYPE_COUNT    int64_t
#define OPTION_TYPE_BYTES    int64_t
#define OPTION_TYPE_DURATION int64_t
#define OPTION_TYPE_DECIMAL  double

/* [kernelspec NAME] in the configuration file: a kernel in an image of its own.
 * Without argv the image holds coppice_kernel; with argv it is a foreign one, which binds ipc
 * sockets in a small tmpfs; {connection_file} in argv is replaced. */
struct config_spec {
	char *name;
	char *image;
	char *argv; /* JSON array text, or "" */
	char *display_name;
	char *language;
	char *interrupt_mode; /* "message" or "signal" */
};

struct config {
#define OPTION(name, type, ...) OPTION_TYPE_##type name;
#include "options.def"
#undef OPTION
	struct config_spec *specs;
	size_t n_specs;
};

/* Reads defaults, --config's file, COPPICE_* of environ, then argv[1..] (getopt_long). Computes the
 * defaults that depend on the machine (data_dir, run_dir, token_file). E_INVALID names the option,
 * what was given and what is allowed. */
int config_read(struct config *config, int argc, char **argv, char **environ, struct err *err);
void config_done(struct config *config);
/* Prints one line per option for --help. */
void config_help(void);

/* Walks a comma separated list; returns the next item (NUL-ended, in item) or false at the end. */
bool config_list_next(const char **at, char *item, size_t size);

#endif
