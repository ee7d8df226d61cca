/* The end of a kernel as clients know it: by them, or with the gateway. */
#include <assert.h>
#include <string.h>

#include "gateway/spine/desk_new.h"
#include "gateway/spine/limits.h"
#include "gateway/spine/moves.h"
#include "gateway/spine/notice.h"
#include "gateway/spine/sessions.h"
#include "gateway/spine/survive.h"

void desk_on_ended(void *data)
{
	struct desk *d = data;
	struct err err;
	d->kernel = NULL;
	log_info(&d->log, "kernel_ended");
	err_set(&err, E_GONE, "the kernel was ended");
	desk_tell_waiters(d, &err);
	if (d->ended)
		d->ended(d->ended_data);
	desk_release(d);
}

static void end_kernel(struct desk *d)
{
	kernel_end(d->kernel, desk_on_ended, d);
}

void desk_end(struct desk *d, const char *reason, void (*cb)(void *data), void *data)
{
	assert(!d->ending);
	d->open = false;
	d->ended = cb;
	d->ended_data = data;
	survive_forget(d);
	kernels_unlist(d);
	if (d->gw->sessions)
		sessions_kernel_gone(d->gw->sessions, d->id);
	timer_stop(d->gw->clock, &d->exit_timer);
	limit_cancel(d);
	move_cancel(d, "the kernel was ended meanwhile");
	requests_abort(d, true);
	if (!d->dead) {
		if (reason && *reason)
			notice_text(d, JOURNAL_TO_ALL, "%s", reason);
		notice_break(d, "dead", JOURNAL_TO_ALL);
		(void)copy_text(d->reason, sizeof d->reason, reason ? reason : "ended",
			strlen(reason ? reason : "ended")); /* may be cut */
	}
	d->ending = true;
	clients_close(d, JOURNAL_TO_ALL, 1000, "the kernel was ended");
	if (!files_settle(d, end_kernel))
		end_kernel(d);
}

void desk_leave(struct desk *d, bool left)
{
	assert(!d->ending);
	if (left)
		d->kernel = NULL;
	d->open = false;
	d->leaving = d->ending = true;
	timer_stop(d->gw->clock, &d->exit_timer);
	limit_leave(d);
	move_cancel(d, "the gateway is ending");
	files_give_up(d, "the gateway is ending");
	requests_forget(d);
	kernels_unlist(d);
	/* The door's have gone before; a client of the house holds us until it is told. */
	clients_close(d, JOURNAL_TO_ALL, 1012, "the gateway restarts");
	if (left)
		desk_release(d);
	else
		kernel_end(d->kernel, desk_on_ended, d);
}
