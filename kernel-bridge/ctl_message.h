/* The messages of docs/PROTOCOL-ctl.md: one table of rows, reading and writing checked against it.
 * No input or output. What is read comes from a container and is untrusted. Any thread. */
#ifndef COPPICE_BRIDGE_CTL_MESSAGE_H
#define COPPICE_BRIDGE_CTL_MESSAGE_H

#include "gateway/base/base.h"
#include "gateway/base/err.h"

struct cJSON;

#define CTL_VERSION    1
#define CTL_PACKET_MAX 65536
#define CTL_FDS_MAX    5
#define CTL_FIELDS_MAX 10
#define CTL_TYPE_MAX   64 /* longest unknown type that is named in an answer, with its NUL */

enum ctl_type {
	CTL_HELLO,
	CTL_WELCOME,
	CTL_START,
	CTL_STARTED,
	CTL_START_FAILED,
	CTL_SIGNAL,
	CTL_SIGNALLED,
	CTL_KILL,
	CTL_EXITED,
	CTL_ACK,
	CTL_REPLAY,
	CTL_KEPT,
	CTL_KEPT_END,
	CTL_HAND_OVER,
	CTL_HANDED_OVER,
	CTL_REPORT,
	CTL_ASK,
	CTL_ANSWER,
	CTL_PARKED,
	CTL_NOT_PARKED,
	CTL_UNPARKED,
	CTL_RELEASE,
	CTL_REVIVE,
	CTL_REVIVED,
	CTL_DROP_FOLDER,
	CTL_FILES,
	CTL_WANT,
	CTL_CONTENT,
	CTL_SCAN,
	CTL_LAY,
	CTL_LAID,
	CTL_LAY_CONTENT,
	CTL_LAY_END,
	CTL_ERROR,
	CTL_TYPES
};

enum ctl_direction { CTL_UP = 1, CTL_DOWN = 2, CTL_BOTH = 3 };
enum ctl_kind { CTL_INT, CTL_TEXT, CTL_BOOL, CTL_TEXTS, CTL_LIST, CTL_KINDS };

struct ctl_field {
	const char *name; /* NULL ends the row */
	enum ctl_kind kind;
	bool optional; /* may be absent or null */
};

struct ctl_row {
	const char *type;
	enum ctl_direction direction;
	unsigned fds; /* descriptors that travel with the packet */
	struct ctl_field fields[CTL_FIELDS_MAX + 1];
};

const struct ctl_row *ctl_row(enum ctl_type type);
const char *ctl_kind_name(enum ctl_kind kind);

/* A packet that came up: UTF-8 JSON object of a known type with all its fields. ret_about (of
 * CTL_TYPE_MAX, always set) names the type as far as it is known, for the answer `error`.
 * E_INVALID: to be answered and ignored. The caller owns the tree. */
int ctl_message_read(struct bytes packet, enum ctl_type *ret_type, struct cJSON **ret_message,
	char ret_about[CTL_TYPE_MAX], struct err *err);

/* A message that goes down, without its fields yet; the caller owns it. */
struct cJSON *ctl_message_new(enum ctl_type type);
/* Its packet; the caller frees it. E_INVALID: it does not fit its row; E_TOO_BIG. */
int ctl_message_write(const struct cJSON *message, char **ret_text, struct err *err);

/* Fields of a message that was checked; otherwise if it is absent. */
int64_t ctl_int(const struct cJSON *message, const char *name, int64_t otherwise);
const char *ctl_text(const struct cJSON *message, const char *name, const char *otherwise);
bool ctl_bool(const struct cJSON *message, const char *name);

#endif
