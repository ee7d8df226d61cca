/* A notebook in memory, as nbformat 4.5 has it: what a history is exported to, imported from and
 * compared as. Read from an .ipynb and written as one; percent.h has its script. JSON inside is
 * text that json_scan() accepted: it is spliced, so that no number passes through a double and a
 * hostile file grows no tree. Owns copies, bounded by NOTEBOOK_MAX. Any thread, one at a time. */
#ifndef COPPICE_HISTORY_NOTEBOOK_H
#define COPPICE_HISTORY_NOTEBOOK_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"

#define NOTEBOOK_MAX	   (512u << 20) /* of all its texts */
#define NOTEBOOK_CELLS_MAX 10000u	/* of a file that is read */
#define CELL_ID_SIZE	   65
#define KERNELSPEC_SIZE	   128

enum cell_kind { CELL_CODE, CELL_MARKDOWN, CELL_RAW };

struct cell {
	enum cell_kind kind;
	char id[CELL_ID_SIZE];	  /* "": none yet, or not a valid one */
	char fresh[CELL_ID_SIZE]; /* what it is called if id is none, or taken */
	char count[24];		  /* digits, or "null" */
	bool idle;		  /* it was held back behind a failure: it never ran */
	struct buf source;
	struct buf outputs;	/* nbformat's list, its texts joined; empty is [] */
	struct buf metadata;	/* an object; empty is {} */
	struct buf attachments; /* an object, or empty */
};

struct notebook {
	struct cell *cells;
	size_t n, size;
	struct buf metadata; /* an object; empty: made from kernelspec */
	char kernelspec[KERNELSPEC_SIZE];
};

void notebook_init(struct notebook *nb);
void notebook_done(struct notebook *nb);
/* An empty one at its end; valid until the next is added. */
struct cell *notebook_add(struct notebook *nb, enum cell_kind kind);
/* Takes out the cells for which it is true. */
void notebook_drop(struct notebook *nb, bool (*goes)(void *data, size_t at), void *data);
/* Each cell keeps its id if it is valid and the first to have it, else it gets its fresh one, or
 * one that is counted. */
void notebook_name_cells(struct notebook *nb);
/* E_TOO_BIG if its texts pass NOTEBOOK_MAX or one of them its own bound. */
int notebook_check(const struct notebook *nb, struct err *err);

bool cell_id_valid(const char *id);
/* What nbformat knows only as text and a kernel sent as something else becomes its JSON's text. */
int cell_make_valid(struct cell *c, struct err *err);
/* Of a code cell: the first output that is an error; {0} if none is. */
struct bytes cell_error(const struct cell *c);
/* Adds what a notebook's `metadata` is. */
void notebook_metadata(const struct notebook *nb, struct buf *ret_json);

/* ---- notebook_write.c ---- */

struct notebook_style {
	bool renumber; /* executed cells are counted from 1 */
};

/* Adds the text of an .ipynb as Jupyter lays it out. */
int notebook_write(const struct notebook *nb, const struct notebook_style *style,
	struct buf *ret_json, struct err *err);
/* Adds one cell as JSON on one line. */
void cell_write(const struct cell *c, struct buf *ret_json);
/* Adds value as Jupyter lays it out, `depth` levels in. */
void json_lay_out(struct bytes value, unsigned depth, struct buf *ret_json);

/* ---- notebook_read.c ---- */

/* An .ipynb of version 4. E_INVALID: it is none, err says what is wrong; E_TOO_BIG: too many
 * cells. */
int notebook_read(struct bytes file, struct notebook *ret_nb, struct err *err);
/* One cell as cell_write() wrote it, and as a notebook holds it. */
int cell_read(struct bytes json, struct notebook *nb, struct err *err);
/* Adds object's members but that of our own data. */
void metadata_stripped(struct bytes object, struct buf *ret_json);

#define METADATA_KEY "coppice" /* where ours is, in metadata */

#endif
