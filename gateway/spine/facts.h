/* What the spine itself says of an execution, as entries of the journal that no client gets: how it
 * went, at its end, and what its kernel learnt of it afterwards. Loop thread. */
#ifndef COPPICE_SPINE_FACTS_H
#define COPPICE_SPINE_FACTS_H

#include "gateway/base/err.h"
#include "gateway/base/jmsg.h"

struct desk;
struct execution;

/* The most memory that the kernel's process had meanwhile, as an execute_reply says; 0: it does
 * not. A guest's number about its own cell. */
uint64_t facts_peak(const struct jmsg *reply);
enum facts_files { FACTS_FILES_UNSAID, FACTS_FILES_SAME, FACTS_FILES_CHANGED };

/* What an execute_reply says of the working folder; changed: its container tells more, or that it
 * is the same after all. */
enum facts_files facts_files(const struct jmsg *reply);
/* SCRIBE_FILES: the folder changed while no cell ran; how is not in it yet. NULL: E_NOMEM. */
struct jmsg *facts_folder(const struct desk *d, struct err *err);
/* SCRIBE_END of x, whose request is still there. NULL: E_NOMEM, E_TOO_BIG. */
struct jmsg *facts_end(const struct execution *x, const char *environment, struct err *err);
/* SCRIBE_REPORT: text of a guest. Its parent is the request, which may be gone: who forgets that
 * finds this too. NULL: the text is none, or there is no memory. */
struct jmsg *facts_report(
	const struct desk *d, const char *msg_id, const char *history, struct bytes text);

#endif
