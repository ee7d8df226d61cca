/* What `coppice backup` and `coppice restore` share. Main thread. */
#ifndef COPPICE_CLI_BACKUP_H
#define COPPICE_CLI_BACKUP_H

#include <limits.h>

#include "gateway/base/err.h"

/* What is in a backup: a tar file with these at its top. */
#define BACKUP_FACTS   "coppice-backup.json" /* {"format": 1, "coppice": "0.1.0", "created": ...} */
#define BACKUP_FORMAT  1
#define BACKUP_TOKENS  "tokens.ini"
#define BACKUP_HISTORY "history" /* ID.git each, without the index */
#define BACKUP_CHAT    "chat"	 /* conversations */

/* A new folder `STEM.XXXXXX`, and the lock that says that somebody works in it. Folders of that
 * stem which nobody works in any more are removed first. */
struct backup_place {
	char path[PATH_MAX];
	int lock;
};

int backup_place_make(struct backup_place *place, const char *stem, struct err *err);
/* Removes what is left of it. */
void backup_place_done(struct backup_place *place);

#endif
