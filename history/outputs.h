/* The nbformat outputs of one run, built from its iopub messages one by one: streams merged, clears
 * and display updates applied. Owns copies of what it keeps, bounded by OUTPUTS_MAX; what does not
 * fit is counted and said in the outputs themselves. One thread. */
#ifndef COPPICE_HISTORY_OUTPUTS_H
#define COPPICE_HISTORY_OUTPUTS_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"

#define OUTPUTS_MAX	   (128u << 20)
#define OUTPUTS_STORED_MAX (4 * (size_t)OUTPUTS_MAX) /* empty lines grow threefold as a list */
#define OUTPUTS_FILE_BYTES 4096u /* binary MIME data longer than that is a file of its own */
#define OUTPUTS_FILE_KEY   "coppice-file"
#define OUTPUTS_NAME_SIZE  32
#define DISPLAY_ID_SIZE	   256
#define DISPLAYS_KEPT	   1000u /* of a run: those that a later run can still update */

struct outputs;

struct outputs_counts {
	uint64_t stdout_bytes, stderr_bytes, outputs;
};

struct outputs *outputs_new(void);
void outputs_free(struct outputs *o);

/* What outputs_write() and outputs_displays() gave earlier; displays may be empty. */
int outputs_load(struct outputs *o, struct bytes stored, struct bytes displays, struct err *err);

/* An update_display_data is none. */
bool outputs_is_output(const char *msg_type);
/* One message by type and content (accepted JSON). What is no output is ignored. E_NOMEM. */
int outputs_message(struct outputs *o, const char *msg_type, struct bytes content, struct err *err);
/* True if an output with that id is there. */
bool outputs_has_display(const struct outputs *o, const char *display_id);
/* An update_display_data; nothing happens if no output has its id. */
int outputs_update(
	struct outputs *o, const char *display_id, struct bytes content, struct err *err);
/* True if something came since it was made or loaded. */
bool outputs_changed(const struct outputs *o);
/* The display_id of a content, "" if there is none. */
void outputs_display_id(struct bytes content, char ret_id[DISPLAY_ID_SIZE]);

/* Applies what waits and adds the text of outputs.json; the texts in o are gone after it, counts,
 * displays and files stay. */
int outputs_write(struct outputs *o, struct buf *ret_json, struct outputs_counts *ret_counts,
	struct err *err);
/* Adds [{"display_id":..., "outputs":[...]}, ...]. */
int outputs_displays(const struct outputs *o, struct buf *ret_json, struct err *err);
/* on_file for each file beside; data.data is NULL if it was loaded, that is, lies there already.
 * Stops at what is not 0. */
int outputs_files(const struct outputs *o,
	int (*on_file)(void *data, const char *name, struct bytes content, struct err *err),
	void *data, struct err *err);
/* Each display_id. */
int outputs_display_ids(const struct outputs *o,
	int (*on_id)(void *data, const char *display_id, struct err *err), void *data,
	struct err *err);

/* ---- outputs_read.c ---- */

/* Adds nbformat's list from what was stored: multi-line text joined, files put back as base64. file
 * adds the content of a file beside. */
int outputs_expand(struct bytes stored,
	int (*file)(void *data, const char *name, struct buf *ret_content, struct err *err),
	void *data, struct buf *ret_json, struct err *err);

#endif
