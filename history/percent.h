/* A notebook as a Python script in jupytext's percent format: each cell begins with a line `# %%`.
 * Lines of IPython that are no Python (`%time`, `!ls`, `name?`) stand as comments, as jupytext does
 * it; a line of code that looks like a beginning gets a `# ` more. Outputs, counts, ids, and blank
 * lines at a cell's end are not kept. Any thread. */
#ifndef COPPICE_HISTORY_PERCENT_H
#define COPPICE_HISTORY_PERCENT_H

#include "history/notebook.h"

int percent_write(const struct notebook *nb, struct buf *ret_text, struct err *err);
/* E_INVALID: no UTF-8, or a NUL. A script without any `# %%` is one cell. */
int percent_read(struct bytes file, struct notebook *ret_nb, struct err *err);

/* ---- percent_lines.c: single lines ---- */

/* What is open where a line begins; 0 at a cell's begin. */
struct percent_state {
	char triple;	/* of which a text of three quotes is open, or 0 */
	bool continued; /* the line before was IPython's and ends with a backslash */
};

/* Adds the line (without its newline) as it stands in a script, or as it stands in a cell. */
void percent_escape(struct percent_state *s, struct bytes line, struct buf *ret_text);
void percent_unescape(struct percent_state *s, struct bytes line, struct buf *ret_text);
/* Likewise for text, all of which is a comment. */
void percent_comment(struct bytes line, struct buf *ret_text);
void percent_uncomment(struct bytes line, struct buf *ret_text);
/* The line begins a cell; *ret_rest is what stands behind the `%%`. */
bool percent_marker(struct bytes line, struct bytes *ret_rest);

#endif
