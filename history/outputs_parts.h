/* The inside of struct outputs, for outputs.c, outputs_store.c and outputs_mime.c. */
#ifndef COPPICE_HISTORY_OUTPUTS_PARTS_H
#define COPPICE_HISTORY_OUTPUTS_PARTS_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"
#include "gateway/base/hash.h"
#include "history/outputs.h"

enum output_kind { OUTPUT_STDOUT, OUTPUT_STDERR, OUTPUT_WHOLE };

struct out_file {
	struct out_file *next;
	char name[OUTPUTS_NAME_SIZE];
	uint8_t *data; /* NULL: it lies in the tree already */
	size_t len;
};

/* A stream's text is the inside of a JSON string, anything else a whole JSON object. */
struct output {
	enum output_kind kind;
	uint8_t *text;
	size_t len, size;
	struct out_file *files;
};

struct display {
	char *id;
	size_t *at; /* which outputs */
	size_t n, size;
	uint8_t *latest;	 /* content of the last update, NULL if there was none */
	size_t latest_len, upto; /* it concerns the outputs below upto */
	UT_hash_handle hh;
};

struct outputs {
	struct output *list;
	size_t n, size;
	size_t used; /* bytes, with what each output costs by itself */
	struct display *displays;
	unsigned last_file;
	bool clear_waits, changed;
	uint64_t dropped, dropped_bytes;
	struct buf scratch;
};

/* ---- outputs_mime.c ---- */

/* Adds `"data":{...}`; binary data goes to files in front of *files. */
int mime_add(struct outputs *o, struct bytes data, struct out_file **files, struct buf *ret);
/* Finds the files that a stored output names. */
int mime_files(struct outputs *o, struct bytes data, struct out_file **files);
void out_files_free(struct out_file *files);
/* Adds the inside of a string as a list of its lines. */
int lines_add(struct bytes inside, struct buf *ret);
bool mime_is_json(struct bytes inside_key);
/* The name in {"coppice-file":"out-1.png"}, else false. */
bool mime_reference(struct bytes value, char ret_name[OUTPUTS_NAME_SIZE]);

#endif
