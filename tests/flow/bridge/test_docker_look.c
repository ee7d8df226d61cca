/* What the engine's `top` says is left of a line: processes of this test in the roles of a
 * container's, with states as the engine might tell them. */
#include <signal.h>
#include <sys/prctl.h>

#include "tests/flow/bridge/docker_fixture.h"

#define CHILDREN 4

struct place {
	struct fixture fx;
	pid_t child[CHILDREN];
	char top[768];
	unsigned n;
	int code;
	char text[512];
};

static void on_looked(void *data, const struct err *left)
{
	struct place *p = data;
	p->n++;
	p->code = left ? left->code : 0;
	(void)snprintf(p->text, sizeof p->text, "%s", left ? left->text : "");
}

/* Line 1 is there, and this process is the supervisor. */
static void open_place(struct place *p)
{
	memset(p, 0, sizeof *p);
	for (int i = 0; i < CHILDREN; i++) {
		p->child[i] = fork();
		assert_true(p->child[i] >= 0);
		if (p->child[i] == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* if this test fails */
			for (;;)
				(void)pause();
		}
	}
	adopted(&p->fx, HELLO "\"1:999999:k\"]}");
}

static void close_place(struct place *p)
{
	for (int i = 0; i < CHILDREN; i++) {
		assert_int_equal(kill(p->child[i], SIGKILL), 0);
		assert_int_equal(waitpid(p->child[i], NULL, 0), p->child[i]);
	}
	teardown(&p->fx);
}

static void list_begin(struct place *p)
{
	(void)snprintf(p->top, sizeof p->top,
		"{\"Titles\":[\"PID\",\"PPID\",\"STAT\"],\"Processes\":[[\"%d\",\"1\",\"Ss\"]",
		(int)getpid());
}

static void list(struct place *p, long pid, long parent, const char *state)
{
	size_t len = strlen(p->top);
	(void)snprintf(
		p->top + len, sizeof p->top - len, ",[\"%ld\",\"%ld\",\"%s\"]", pid, parent, state);
}

static int look(struct place *p, unsigned line)
{
	struct err err;
	size_t len = strlen(p->top);
	(void)snprintf(p->top + len, sizeof p->top - len, "]}");
	p->fx.top = p->top;
	p->n = 0;
	assert_int_equal(p->fx.engine->ops->look(p->fx.slot, line, on_looked, p, &err), 0);
	until(&p->fx, &p->n);
	return p->code;
}

static void tell_parked(struct place *p, long pid)
{
	char packet[256];
	(void)snprintf(packet, sizeof packet,
		"{\"type\":\"parked\",\"line\":1,\"msg_id\":\"m\",\"park\":7,\"pid\":%ld,"
		"\"data\":\"{}\"}",
		pid);
	say(&p->fx, packet);
	until(&p->fx, &p->fx.parked);
}

TEST(docker_look, the_supervisor_alone)
{
	struct place p;
	open_place(&p);
	list_begin(&p);
	assert_int_equal(look(&p, 1), 0);
	close_place(&p);
}

TEST(docker_look, a_process_that_nobody_knows)
{
	struct place p;
	open_place(&p);
	list_begin(&p);
	list(&p, p.child[0], getpid(), "S");
	assert_int_equal(look(&p, 1), E_BUSY);
	assert_non_null(strstr(p.text, "1 process is of it still there"));
	list_begin(&p);
	list(&p, p.child[0], 1, "T"); /* stopped, and not known to be parked */
	list(&p, p.child[1], p.child[0], "R");
	assert_int_equal(look(&p, 1), E_BUSY);
	assert_non_null(strstr(p.text, "2 processes are"));
	list_begin(&p);
	list(&p, p.child[0], getpid(), "Z"); /* it is collected some day */
	assert_int_equal(look(&p, 1), 0);
	close_place(&p);
}

TEST(docker_look, what_is_parked)
{
	struct place p;
	open_place(&p);
	tell_parked(&p, p.child[0]);
	list_begin(&p);
	list(&p, p.child[0], getpid(), "T");
	assert_int_equal(look(&p, 1), 0);
	list_begin(&p);
	list(&p, p.child[0], getpid(), "S"); /* what is called parked and runs is not */
	assert_int_equal(look(&p, 1), E_BUSY);
	list_begin(&p);
	list(&p, p.child[0], getpid(), "T");
	list(&p, p.child[1], p.child[0], "S"); /* below it */
	assert_int_equal(look(&p, 1), E_BUSY);
	say(&p.fx, "{\"type\":\"unparked\",\"park\":7,\"reason\":\"thinned\"}");
	until(&p.fx, &p.fx.unparked);
	list_begin(&p);
	list(&p, p.child[0], getpid(), "T");
	assert_int_equal(look(&p, 1), E_BUSY);
	close_place(&p);
}

/* Line 2 was begun from a park: its process is below that, its kernel below its process. */
TEST(docker_look, another_line_lives_on)
{
	struct place p;
	struct err err;
	char packet[128];
	open_place(&p);
	tell_parked(&p, p.child[0]);
	const struct line_start start = {
		.line = 2, .kernel_id = "k", .spec = &p.fx.spec, .key = "key"};
	assert_int_equal(p.fx.engine->ops->revive(p.fx.slot, &start, 7, &err), 0);
	cJSON_Delete(hear(&p.fx, "revive"));
	for (int told = 0; told < 2; told++) {
		list_begin(&p);
		list(&p, p.child[0], getpid(), "T");
		list(&p, p.child[1], p.child[0], "S");
		list(&p, p.child[2], p.child[1], "S");
		list(&p, p.child[3], p.child[2], "R");
		assert_int_equal(look(&p, 1), told ? 0 : E_BUSY);
		if (told)
			break;
		p.fx.started = 0;
		(void)snprintf(packet, sizeof packet,
			"{\"type\":\"started\",\"line\":2,\"pid\":%d}", (int)p.child[2]);
		say(&p.fx, packet);
		while (p.fx.line != 2)
			turn(&p.fx);
	}
	list_begin(&p); /* of line 1, beside it */
	list(&p, p.child[1], p.child[0], "S");
	list(&p, p.child[2], p.child[1], "S");
	list(&p, p.child[3], getpid(), "R");
	assert_int_equal(look(&p, 1), E_BUSY);
	list_begin(&p); /* of two lines that end the one's processes are not the other's */
	list(&p, p.child[2], p.child[1], "S");
	assert_int_equal(look(&p, 2), E_BUSY);
	/* A kernel whose process above is gone does not make all that is the supervisor's its own.
	 */
	list_begin(&p);
	list(&p, p.child[2], getpid(), "S");
	list(&p, p.child[3], getpid(), "R");
	assert_int_equal(look(&p, 1), E_BUSY);
	close_place(&p);
}

/* The one that a move left behind is slow to go: the one that took its place does not go with it.
 */
TEST(docker_look, a_line_that_lives_is_not_killed_with_one_that_does_not_end)
{
	struct place p;
	struct err err;
	open_place(&p);
	tell_parked(&p, p.child[0]);
	const struct line_start start = {
		.line = 2, .kernel_id = "k", .spec = &p.fx.spec, .key = "key"};
	assert_int_equal(p.fx.engine->ops->revive(p.fx.slot, &start, 7, &err), 0);
	cJSON_Delete(hear(&p.fx, "revive"));
	say(&p.fx, "{\"type\":\"started\",\"line\":2,\"pid\":9}");
	while (p.fx.line != 2)
		turn(&p.fx);
	assert_int_equal(p.fx.engine->ops->kill_line(p.fx.slot, 1, &err), 0);
	cJSON_Delete(hear(&p.fx, "kill"));
	fake_clock_advance(p.fx.clock, 29999);
	list_begin(&p);
	assert_int_equal(look(&p, 1), 0); /* a round trip: it would have been asked by now */
	assert_int_equal(p.fx.killed, 0);
	fake_clock_advance(p.fx.clock, 1);
	until(&p.fx, &p.fx.killed);
	close_place(&p);
}

TEST(docker_look, an_answer_that_says_nothing)
{
	static const char *const answers[] = {NULL, "{}", "[]", "{\"Titles\":[\"PID\"]}",
		"{\"Titles\":[\"PID\",\"PPID\"],\"Processes\":[]}"};
	struct place p;
	struct err err;
	open_place(&p);
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		p.fx.top = answers[i];
		p.n = 0;
		assert_int_equal(p.fx.engine->ops->look(p.fx.slot, 1, on_looked, &p, &err), 0);
		until(&p.fx, &p.n);
		assert_true(p.code != 0);
	}
	close_place(&p);
}

RUN(TEST_ROW(docker_look, the_supervisor_alone), TEST_ROW(docker_look, a_process_that_nobody_knows),
	TEST_ROW(docker_look, what_is_parked), TEST_ROW(docker_look, another_line_lives_on),
	TEST_ROW(docker_look, a_line_that_lives_is_not_killed_with_one_that_does_not_end),
	TEST_ROW(docker_look, an_answer_that_says_nothing))
