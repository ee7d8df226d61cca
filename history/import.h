/* A notebook or a script as a history: a repository of its own, written whole beside the others and
 * put in place at once. Its code cells are its executions, of which nobody saw one; all else that
 * the notebook holds lies beside them, so that an export has it again. The bulk lane's thread only.
 */
#ifndef COPPICE_HISTORY_IMPORT_H
#define COPPICE_HISTORY_IMPORT_H

#include "history/ask.h"

#define IMPORT_NAME_MAX 200u /* bytes of a name */

/* HISTORY_IMPORT: the new history's id. The index does not have it yet. E_INVALID, E_TOO_BIG: the
 * file; E_IO. */
int answer_import(
	struct asker *a, const struct history_question *q, struct buf *ret_id, struct err *err);

#endif
