/* Python as far as it can be told without its parser: tokens (strings, brackets, logical lines),
 * and whether a text may be a program. Borrows its text. Pure, any thread. */
#ifndef COPPICE_FRONTEND_ADAPTER_PYTHON_H
#define COPPICE_FRONTEND_ADAPTER_PYTHON_H

#include "gateway/base/base.h"

enum py_kind {
	PY_END,
	PY_LINE,    /* the end of a logical line */
	PY_COMMENT, /* to the end of the line */
	PY_MAGIC,   /* a line of IPython's own: %... or !..., to its end */
	PY_NAME,    /* keywords too */
	PY_NUMBER,
	PY_STRING, /* with prefix and quotes */
	PY_OP,
	PY_STRAY, /* a character that Python knows in strings only: a no-break space, a smart quote
		   */
	PY_OTHER, /* a run of `, or one byte that begins nothing */
};

struct py_token {
	enum py_kind kind;
	struct bytes text;
	bool spaced; /* blanks before it */
	bool first;  /* of its logical line */
	bool open;   /* a string that does not end: at the line's end, or the text's if triple */
	bool triple;
};

struct py_lexer {
	const uint8_t *begin, *at, *end;
	unsigned depth; /* of brackets */
	bool fresh;	/* nothing of this logical line was seen */
	bool assigned;	/* the last token was = */
};

void py_begin(struct py_lexer *lx, struct bytes code);
/* False at the end; then ret->kind is PY_END. */
bool py_next(struct py_lexer *lx, struct py_token *ret);
bool py_is(const struct py_token *t, const char *text);

enum py_stray {
	PY_STRAY_NONE,
	PY_STRAY_SPACE,
	PY_STRAY_NOTHING,
	PY_STRAY_DOUBLE,
	PY_STRAY_SINGLE,
	PY_STRAY_SIGN
};
/* What the character at at stands for; ret_ascii: by which one to replace it (0: by none), ret_len:
 * its bytes. */
enum py_stray py_stray_at(const uint8_t *at, const uint8_t *end, char *ret_ascii, size_t *ret_len);

enum py_look {
	PY_PROSE, /* or data, or too little to tell */
	PY_CODE,
	PY_CUT /* code that ends in the midst */
};
/* Careful: PY_CODE only with a sign of it (a call, an assignment, an import ...) and without any
 * two words side by side that no program has. */
enum py_look py_look(struct bytes code);
/* The last thing in it is a string without its end. */
bool py_ends_in_string(struct bytes code);
/* The first line that is not blank begins with %%: the rest is not Python. */
bool py_is_cell_magic(struct bytes code);

#endif
