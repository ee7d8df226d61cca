/* The outputs of one run as nbformat has them, within their share of the result budget. What does
 * not fit: pictures are scaled down once the run is over, or too much is held; other
 * representations are left out, the largest first; both is named. Owns its trees. Loop thread. */
#ifndef COPPICE_ADAPTER_SHOWN_H
#define COPPICE_ADAPTER_SHOWN_H

#include <stdbool.h>

#include "frontend-adapter/renderer.h"
#include "gateway/base/list.h"

struct cJSON;

#define SHOWN_HELD_MAX (24u << 20) /* of pictures, before they are scaled */

struct shown_to {
	/* A new output, or with `update` another content of those with its display_id; takes it. */
	void (*tell)(void *data, struct cJSON *output);
	void *data;
	struct renderer *renderer; /* NULL: what does not fit is left out */
	struct clock *clock;
};

struct shown {
	struct list outputs;		   /* of struct shown_output */
	size_t max, plain, pictures, told; /* bytes as JSON: at most, without pictures, theirs, of
					    * what was told */
	bool withholds;			   /* what comes is told in the end, in order */
	struct cJSON *truncated;	   /* [sentence] */
	unsigned n_truncated, n_scaled;
	struct shown_to to;
	struct list *next; /* to be looked at, while pictures are scaled */
	unsigned n_out;
	size_t picture_max;
	uint64_t began_ms;
	void (*settled)(void *data);
	void *settled_data;
};

struct shown_output {
	struct list link;
	struct shown *shown;
	struct cJSON *tree;
	char *display_id;	/* "": none */
	size_t plain, picture;	/* bytes as JSON */
	bool told, update_owed; /* it was told; but not with its present content */
};

void shown_init(struct shown *s, size_t max, const struct shown_to *to);
/* Not while pictures are scaled. */
void shown_done(struct shown *s);
/* Pictures are being scaled: nothing but shown_settle() is to be called. */
bool shown_scales(const struct shown *s);
/* display_data, execute_result, error or update_display_data. E_NOMEM: it is lost. */
int shown_add(struct shown *s, const char *msg_type, const struct cJSON *content);
void shown_clear(struct shown *s);
/* Nothing more comes. False: all is settled. True: pictures are being scaled, cb from the loop,
 * once.
 */
bool shown_settle(struct shown *s, void (*cb)(void *data), void *data);
/* [output]; adds sentences about what is not there, or not as it was. */
struct cJSON *shown_list(const struct shown *s);
void shown_add_truncated(const struct shown *s, struct cJSON *list);

#endif
