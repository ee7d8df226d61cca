/* Inside of the spine: which executions of a kernel it can go back to, because a process that stood
 * there is parked in its container, and what of it would be lost. Owned by a desk. What is told of
 * a park is a guest's. Loop thread. */
#ifndef COPPICE_SPINE_PARKS_H
#define COPPICE_SPINE_PARKS_H

#include "gateway/base/buf.h"
#include "gateway/base/list.h"

struct cJSON;
struct desk;
struct err;
struct kernels;
struct owner;

#define REFUSALS_MAX 64u
#define REFUSAL_SIZE 200u

enum fidelity { FIDELITY_EXACT, FIDELITY_PARTIAL, FIDELITY_CODE_ONLY };

struct parked {
	struct list link;
	char *msg_id;
	int64_t park;
	char *text; /* JSON: digest, execution_count, seconds, lost, folder */
	bool is_partial;
};

struct refusal {
	struct list link;
	char *msg_id;
	char reason[REFUSAL_SIZE];
};

struct parks {
	struct list parked, refused; /* refused: the last REFUSALS_MAX, oldest first */
	unsigned n_refused;
};

void parks_init(struct parks *p);
void parks_done(struct parks *p);
/* kernel_watcher's. */
void parks_on_parked(void *desk, const char *msg_id, int64_t park, struct bytes text);
void parks_on_unparked(void *desk, int64_t park, const char *reason);
void parks_on_not_parked(void *desk, const char *msg_id, const char *reason);

/* NULL: it is not parked. */
const struct parked *parks_find(const struct parks *p, const char *msg_id);
/* Why it was not parked, or NULL: nothing was said. */
const char *parks_refusal(const struct parks *p, const char *msg_id);
/* What leads to a node. */
struct parks_found {
	struct desk *of; /* whose line it was */
	const struct parked *park;
	struct cJSON
		*report; /* of a failure: what would have to be run again; the caller owns it */
};
/* way: history's answer to HISTORY_WAY. d: whose container must have it; NULL: any of the owner's.
 * E_PARTIAL: nothing of the node is kept but the code. */
int parks_find_way(struct kernels *ks, const struct owner *owner, const struct desk *d,
	const struct cJSON *way, struct parks_found *ret, struct err *err);
/* What is forgotten is not kept as a state either. */
void parks_forget(struct desk *d, const char *msg_id);
/* Nothing that was parked until now is kept, nor can be gone back to. E_GONE the kernel is ended;
 * E_BUSY it is on its way back to one of them. */
int parks_release_all(struct desk *d, unsigned *ret_n, struct err *err);
/* history_question.parked, each inits the text: what the desk's kernel can go back to, or all that
 * is the owner's. */
void parks_list_of(const struct desk *d, struct buf *ret_text);
void parks_list_all(const struct kernels *ks, const struct owner *owner, struct buf *ret_text);

const char *fidelity_name(enum fidelity f);
/* False: it is none of the three words. */
bool fidelity_read(const char *name, enum fidelity *ret);

/* A report of http-api.md; the caller owns it. */
struct cJSON *report_new(enum fidelity f);
/* Never better than it was. */
void report_lower(struct cJSON *report, enum fidelity f);
enum fidelity report_fidelity(const struct cJSON *report);
/* Adds what that text of a guest lists as lost, each thing once. */
void report_add_lost(struct cJSON *report, struct bytes text);
/* Entries of a node's folder whose content is not kept. */
void report_add_lost_files(struct cJSON *report, const struct cJSON *entries);
/* A guest's list of such things, which come back and mean something else than the person may think.
 */
void report_add_approximate(struct cJSON *report, const struct cJSON *things);
void report_note(struct cJSON *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
