/* ZeroMQ multiparts of a kernel: the input is cut into frames at each newline; an empty key, so
 * that what lies behind the signature is reached. */
#include <string.h>
#include "kernel-bridge/wire.h"

#define FRAMES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static size_t cut(const uint8_t *data, size_t len, struct bytes frames[FRAMES_MAX])
{
	size_t n = 0;
	while (len && n < FRAMES_MAX) {
		const uint8_t *end = memchr(data, '\n', len);
		size_t size = end ? (size_t)(end - data) : len;
		frames[n++] = (struct bytes){data, size};
		size_t used = end ? size + 1 : size;
		data += used;
		len -= used;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes frames[FRAMES_MAX];
	size_t n = cut(data, len, frames);
	struct sign sign;
	struct err err;
	if (sign_init(&sign, "", &err) != 0)
		return 0;
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	if (wire_decode(&sign, CHANNEL_IOPUB, frames, n, &m, &err) == 0) {
		struct wire_head head;
		wire_encode(&sign, m, &head);
	}
	sign_done(&sign);
	return 0;
}
