/* The whole gateway ends in order: what it closes, it had open. */
#include <errno.h>
#include <sys/syscall.h>

#include "tests/lib/house.h"
#include "tests/lib/test.h"

static unsigned closed_in_vain;

/* In the place of the C library's, also for libraries. */
int close(int fd)
{
	int status = (int)syscall(SYS_close, fd);
	if (status < 0 && errno == EBADF)
		__atomic_add_fetch(&closed_in_vain, 1, __ATOMIC_RELAXED);
	return status;
}

/* One that is closed twice may be another thread's the second time. */
TEST(ends, no_descriptor_is_closed_twice)
{
	for (int leave = 0; leave < 2; leave++) {
		struct house h = {0};
		struct err err;
		house_make_folder(&h);
		house_begin(&h);
		assert_int_equal(house_open(&h, &err), 0);
		closed_in_vain = 0;
		house_end(&h, leave != 0);
		assert_int_equal(closed_in_vain, 0);
		house_remove_folder(&h);
	}
}

RUN(TEST_ROW(ends, no_descriptor_is_closed_twice))
