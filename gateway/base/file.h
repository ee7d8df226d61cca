/* Small private files and their folders. Blocks: for start and end and the command line only. */
#ifndef COPPICE_BASE_FILE_H
#define COPPICE_BASE_FILE_H

#include "base.h"
#include "buf.h"
#include "err.h"

/* Makes what is missing of the folder path, each with mode 0700. */
int folders_make(const char *path, struct err *err);
/* The folder of path, that is all before its last slash. */
int file_folder_make(const char *path, struct err *err);
/* Replaces the file at once (temporary file and rename), mode 0600. */
int file_write(const char *path, const void *data, size_t len, struct err *err);
/* Adds the whole file. E_NOT_FOUND, E_TOO_BIG (ret's ceiling), E_IO. */
int file_read(const char *path, struct buf *ret, struct err *err);

#endif
