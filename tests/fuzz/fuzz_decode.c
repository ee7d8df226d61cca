/* WebSocket messages of clients, three framings: the first byte of the input chooses one. */
#include "gateway/door/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	struct inbound in = {
		.framing = data[0] & 1 ? FRAMING_V1 : FRAMING_LEGACY,
		.binary = (data[0] & 2) != 0,
		.data = {data + 1, len - 1},
	};
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	AUTO(jmsg_unrefp) struct jmsg *head = NULL;
	struct err err;
	int status = decode_message(&in, &m, &err);
	if (status != 0)
		(void)decode_close_code(status);
	struct head h;
	size_t half = in.data.len / 2;
	head_init(&h, in.framing);
	head_add(&h, (struct bytes){in.data.data, half});
	head_add(&h, (struct bytes){in.data.data + half, in.data.len - half});
	(void)head_message(&h, &head, &err); /* whatever it says: it must not overrun */
	head_done(&h);
	return 0;
}
