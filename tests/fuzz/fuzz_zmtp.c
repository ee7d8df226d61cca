/* What a peer of a pipe says: the first byte of the input is the length of its pieces, the second
 * the state to begin in. */
#include "kernel-bridge/zmtp.h"

#define FRAMES_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 2)
		return 0;
	struct zmtp z = {.frame_max = 4096};
	if (data[1] & 1)
		z.state = ZMTP_TRAFFIC;
	size_t piece = data[0] ? data[0] : 256, from = 2, end = 2;
	while (true) {
		struct bytes frames[FRAMES_MAX];
		struct zmtp_step s = {
			.frames = frames, .frames_max = FRAMES_MAX, .total_max = 8192};
		struct err err;
		if (zmtp_next(&z, (struct bytes){data + from, end - from}, &s, &err) != 0)
			return 0;
		if (s.used > end - from)
			abort();
		if (s.what == ZMTP_MESSAGE && (s.n == 0 || s.used == 0))
			abort();
		from += s.used;
		if (s.what != ZMTP_WAIT || s.used > 0)
			continue;
		if (s.need <= end - from)
			abort(); /* it would spin */
		if (end == len)
			return 0;
		end = len - end < piece ? len : end + piece;
	}
}
