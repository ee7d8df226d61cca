#include "history/stand.h"

#include <string.h>

/* A node that something was forgotten of has another id since. */
static int find_at(struct db *db, const struct stand *of, struct stands *ret, struct err *err)
{
	char now[HISTORY_NODE_SIZE];
	int status = index_find_node(db, of->history, of->at, &ret->place, err);
	if (status == 0)
		status = index_find_was(db, of->history, of->at, now, err);
	else
		return status;
	return status == 1 ? index_find_node(db, of->history, now, &ret->place, err) : status;
}

int stand_find(struct db *db, const struct stand *of, struct stands *ret, struct err *err)
{
	struct index_place state = {0};
	bool here = false;
	*ret = (struct stands){0};
	int known = index_find_state(db, of->history, of->kernel_id, &state, &here, err);
	if (known < 0)
		return known;
	ret->state_version = state.state_version;
	ret->place = state;
	if (known == 1 && here && state.epoch == of->epoch)
		return 1;
	int status = index_find_epoch(db, of->history, of->kernel_id, of->epoch, &ret->place, err);
	if (status != 0)
		return status;
	ret->begins = true;
	return of->at && *of->at ? find_at(db, of, ret, err) : 0;
}
