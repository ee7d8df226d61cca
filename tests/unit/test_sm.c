#include "tests/lib/test.h"

#include <string.h>

#include "gateway/base/log.h"
#include "gateway/base/sm.h"

enum { DOOR_OPEN, DOOR_SHUT, DOOR_STATES };

static const struct sm_state door_states[] = {
	[DOOR_OPEN] = {"open", TO(DOOR_SHUT)},
	[DOOR_SHUT] = {"shut", 0},
};

static void keep_line(void *data, const char *line, size_t len)
{
	(void)copy_text(data, 256, line, len);
}

TEST(sm, moves_and_logs)
{
	char line[256] = "";
	struct log_sink sink = {.level = LOG_DEBUG, .write = keep_line, .data = line};
	struct log log;
	struct sm sm;
	log_init(&log, &sink);
	sm_init(&sm, "door", door_states, DOOR_STATES, DOOR_OPEN, &log);
	assert_string_equal(sm_name(&sm), "open");
	sm_move(&sm, DOOR_SHUT);
	assert_int_equal(sm.state, DOOR_SHUT);
	assert_non_null(strstr(line, "moved machine=door from=open to=shut"));
}

TEST(sm, works_without_a_log)
{
	struct sm sm;
	sm_init(&sm, "door", door_states, DOOR_STATES, DOOR_OPEN, NULL);
	sm_move(&sm, DOOR_SHUT);
	assert_string_equal(sm_name(&sm), "shut");
}

RUN(TEST_ROW(sm, moves_and_logs), TEST_ROW(sm, works_without_a_log))
