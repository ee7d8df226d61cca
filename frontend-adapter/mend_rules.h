/* The rules of mend.c, one function each: code in, code out (ret latches what does not fit). */
#ifndef COPPICE_FRONTEND_ADAPTER_MEND_RULES_H
#define COPPICE_FRONTEND_ADAPTER_MEND_RULES_H

#include "frontend-adapter/python.h"
#include "gateway/base/buf.h"

/* >>> and ... , In [1]: and ...: ; the output between goes. */
void mend_prompts(struct bytes code, struct buf *ret);
/* Smart quotes that stand where Python wants plain ones. */
void mend_quotes(struct bytes code, struct buf *ret);
/* Outside of strings and comments: spaces of other kinds, signs without width, signs of full width.
 */
void mend_spaces(struct bytes code, struct buf *ret);
/* $ COMMAND; pip install, which IPython takes only if it is all of the cell. */
void mend_shell(struct bytes code, struct buf *ret);
/* Backends with windows of their own, or that draw nothing here. */
void mend_backend(struct bytes code, struct buf *ret);

#endif
