/* The parts of config.c: values, kernelspecs of the file, what depends on the machine. Inside base
 * only. */
#ifndef COPPICE_BASE_CONFIG_PARTS_H
#define COPPICE_BASE_CONFIG_PARTS_H

#include "config.h"

#define OPTION_NAME_SIZE 48

enum value_type {
	VALUE_TEXT,
	VALUE_LIST,
	VALUE_FLAG,
	VALUE_COUNT,
	VALUE_BYTES,
	VALUE_DURATION,
	VALUE_DECIMAL
};

/* A row of options.def. */
struct option_row {
	const char *name;
	enum value_type type;
	size_t offset; /* in struct config */
	const char *standard, *min, *max, *help;
};

/* config_value.c: parses, checks the bounds, sets the member. */
int config_value_set(
	struct config *config, const struct option_row *row, const char *text, struct err *err);
void config_value_done(struct config *config, const struct option_row *row);

/* config_spec.c: [kernelspec NAME]. */
int config_spec_put(struct config *config, const char *name, const char *key, const char *value,
	struct err *err);
int config_specs_check(struct config *config, const char *path, struct err *err);
void config_specs_done(struct config *config);

/* config_paths.c: defaults of the machine, absolute paths, rules between options. */
int config_complete(struct config *config, char **variables, struct err *err);
const char *config_environ(char **variables, const char *name); /* "" if absent */

#endif
