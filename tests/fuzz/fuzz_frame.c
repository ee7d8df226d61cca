/* v1 frames: what is taken apart and put together again is the same message. */
#include <assert.h>
#include <string.h>
#include "gateway/base/jmsg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct err err;
	if (jmsg_from_frame((struct bytes){data, len}, &m, &err) != 0)
		return 0;
	AUTO(jmsg_unrefp) struct jmsg *again = NULL;
	assert(jmsg_from_frame(m->frame, &again, &err) == 0);
	assert(again->channel == m->channel && again->n_buffers == m->n_buffers);
	assert(strcmp(again->msg_id, m->msg_id) == 0);
	for (int i = 0; i < JMSG_PARTS; i++)
		assert(again->part[i].len == m->part[i].len);
	return 0;
}
