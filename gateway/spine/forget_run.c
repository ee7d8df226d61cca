#include "gateway/spine/forget_run.h"

#include <limits.h>
#include <stdio.h>

#include "gateway/gateway.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/journal_forget.h"
#include "gateway/spine/live.h"

int forget_run(struct gateway *gw, const char *kernel_id, const char *msg_id,
	void (*cb)(void *data, const struct err *err), void *data, struct err *err)
{
	char folder[PATH_MAX];
	struct desk *d = NULL;
	(void)snprintf(folder, sizeof folder, "%s/journals/%s", gw->config.data_dir,
		kernel_id); /* as desk.c makes it */
	if (gw->kernels)
		HASH_FIND_STR(gw->kernels->by_id, kernel_id, d);
	if (d) {
		int rc = forgotten_add(&d->scribe.forgotten, folder, msg_id, err);
		if (rc != 0)
			return rc;
		answers_forget(&d->requests.answers, msg_id);
		live_wipe(d->live);
		parks_forget(d, msg_id);
	}
	journal_forget(gw->loop, d ? d->journal : NULL, folder, msg_id, cb, data);
	return 0;
}
