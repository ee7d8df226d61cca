/* The door to inih: reads `[section]`, `name = value` files. Lines that inih would cut silently are
 * refused. Any thread. */
#ifndef COPPICE_BASE_INI_FILE_H
#define COPPICE_BASE_INI_FILE_H

#include <stdio.h>

#include "base.h"
#include "err.h"

/* on_row is called once per value, in the file's order; section is "" before the first. A value
 * that continues on an indented line comes again under the same name. Nonzero, with err set, stops
 * it all. path is for the error's sentence only; file is the caller's to close. */
int ini_file_read(FILE *file, const char *path,
	int (*on_row)(void *data, const char *section, const char *name, const char *value,
		struct err *err),
	void *data, struct err *err);

#endif
