/* Each call into the bridge fails in turn. Whatever fails: every request that a page sent has got
 * one reply and one idle, or its socket was closed; and nothing is left behind. */
#include "tests/lib/spine_fixture.h"

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
/* The journal's entries can fail too: the only calloc of this size that is not xcalloc's. */
static struct fault memory;
void *__libc_calloc(size_t n, size_t size);

void *calloc(size_t n, size_t size)
{
	if (n == 1 && size == sizeof(struct entry) && memory.nth > 0 &&
		++memory.seen == memory.nth) {
		memory.fired = true;
		return NULL;
	}
	return __libc_calloc(n, size);
}
#endif

static void on_done(void *data, const struct err *err)
{
	(void)err;
	++*(int *)data;
}

/* The kernel answers whatever it got. */
static void kernel_works(struct fixture *fx, const char *content)
{
	for (struct jmsg *m; fx->kernel && (m = fake_kernel_take(fx->kernel));) {
		if (strcmp(m->msg_type, "input_reply") != 0) {
			say_status(fx->kernel, m, "busy");
			say_reply(fx->kernel, m, content);
			say_status(fx->kernel, m, "idle");
		}
		jmsg_unref(m);
	}
}

static const char *const ids[] = {"e1", "e2", "e3", "i1", "c1", "e4", "e5", "i2", "d1"};
static const char *const types[] = {"execute", "execute", "execute", "comm_info", "interrupt",
	"execute", "execute", "kernel_info", "debug"};

static void send_some(struct page *p, size_t from, size_t to)
{
	char type[64];
	for (size_t i = from; i < to && !p->closed; i++) {
		(void)snprintf(type, sizeof type, "%s_request", types[i]);
		bool control = i == 4 || i == 8;
		ask(p, control ? CHANNEL_CONTROL : CHANNEL_SHELL, type, ids[i], "{}");
	}
}

static void assert_all_ended(struct page *p, size_t n)
{
	char reply[64];
	for (size_t i = 0; i < n && !p->closed; i++) {
		(void)snprintf(reply, sizeof reply, "%s_reply", types[i]);
		if (!page_has_end(p, ids[i], reply))
			fail_msg("%s has not ended", ids[i]);
	}
}

/* Start, cells held, an error, a death with a restart, an interrupt, a restart, an end. */
static void live(struct fixture *fx)
{
	int calls = 0;
	if (fixture_start(fx) != 0)
		return;
	struct page *p = page_open(fx, "s1");
	send_some(p, 0, 2);
	fake_kernel_ready(fx->kernel);
	send_some(p, 2, 5);
	kernel_works(fx, REPLY_ERROR);
	send_some(p, 5, 7);
	desk_interrupt(fx->desk, on_done, &calls);
	fake_kernel_die(fx->kernel, DEATH_SIGNAL, 9, "killed");
	settle(fx);
	page_pull(p);
	assert_all_ended(p, 7);
	desk_restart(fx->desk, on_done, &calls);
	send_some(p, 7, 9);
	settle(fx);
	assert_int_equal(calls, 2);
	if (kernel_state(fx->kernel) == KERNEL_STARTING)
		fake_kernel_ready(fx->kernel);
	kernel_works(fx, REPLY_OK);
	page_pull(p);
	assert_all_ended(p, 9);
	page_leave(p, 0);
}

TEST(sweep, nothing_is_left_open_whatever_fails)
{
	unsigned nth = 1;
	struct fault fault = {0};
	for (; fault_arm(&fault, nth); nth++) {
		struct fixture *fx = fixture_new();
		*fake_bridge_fault(fx->gw.bridge) = fault;
		live(fx);
		fault = *fake_bridge_fault(fx->gw.bridge);
		fixture_free(fx);
	}
	assert_true(nth > 8);
}

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
TEST(sweep, nothing_is_left_open_when_memory_fails)
{
	unsigned nth = 1;
	for (; fault_arm(&memory, nth); nth++) {
		struct fixture *fx = fixture_new();
		live(fx);
		memory.nth = 0;
		fixture_free(fx);
	}
	memory.nth = 0;
	assert_true(nth > 20);
}

RUN(TEST_ROW(sweep, nothing_is_left_open_whatever_fails),
	TEST_ROW(sweep, nothing_is_left_open_when_memory_fails))
#else
RUN(TEST_ROW(sweep, nothing_is_left_open_whatever_fails))
#endif
