/* A kernel with three cells, of which the second one is parked; history's answers to where it goes.
 * Included by one file per program. */
#ifndef COPPICE_MOVES_FIXTURE_H
#define COPPICE_MOVES_FIXTURE_H

#include "gateway/spine/desk.h"
#include "gateway/spine/moves.h"
#include "tests/lib/survive_fixture.h"

#define NODE  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define TEXT  "{\"digest\":\"d\",\"execution_count\":3,\"seconds\":1,\"lost\":[],\"folder\":\"f\"}"
#define MOVED "{\"digest\":\"d\",\"lost\":[],\"folder\":\"g\"}"
#define LOST                                                                                       \
	"{\"digest\":\"d\",\"lost\":[{\"name\":\"s\",\"kind\":\"socket\",\"reason\":\"cut "        \
	"off\"}],"                                                                                 \
	"\"folder\":\"f\"}"

/* What came of a move. */
struct outcome_of {
	unsigned n;
	int code;
	char text[512];
	cJSON *answer;
};

static inline void on_moved(void *data, const cJSON *answer, const struct err *err)
{
	struct outcome_of *o = data;
	o->n++;
	o->code = err ? err->code : 0;
	(void)snprintf(o->text, sizeof o->text, "%s", err ? err->text : "");
	cJSON_Delete(o->answer);
	o->answer = answer ? cJSON_Duplicate(answer, true) : NULL;
}

static const struct move_order fine = {.node = "In[2]", .state_version = -1};

static inline void go(struct fixture *fx, const struct move_order *order, struct outcome_of *o)
{
	*o = (struct outcome_of){.answer = o->answer};
	desk_checkout(fx->desk, order, on_moved, o);
	assert_int_equal(o->n, 0);
	settle(fx);
}

static inline void assert_outcome(struct outcome_of *o, int code)
{
	assert_int_equal(o->n, 1);
	if (o->code != code)
		fail_msg("%d: %s", o->code, o->text);
}

static inline const char *member(const struct outcome_of *o, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItem(o->answer, name));
}

static inline void record_all(struct fixture *fx)
{
	advance(fx, 110);
	while (fake_histories_waiting(fx->gw.histories) > 0)
		fake_histories_answer(fx->gw.histories, 0);
}

static inline struct fixture *with_histories(void)
{
	struct fixture *fx = fixture_new();
	fx->gw.histories = fake_histories_new();
	fake_bridge_survive(fx->gw.bridge);
	assert_int_equal(fixture_start(fx), 0);
	fake_kernel_ready(fx->kernel);
	return fx;
}

/* Three cells ran, the second one is parked. */
static inline struct fixture *with_cells(struct page **ret_page)
{
	static const char *const ids[] = {"a", "b", "c"};
	struct fixture *fx = with_histories();
	*ret_page = page_open(fx, "s1");
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		execute(*ret_page, ids[i]);
		kernel_answers(fx, ids[i], REPLY_OK);
	}
	record_all(fx);
	assert_int_equal(fx->desk->scribe.state_version, 3);
	fake_kernel_parks(fx->kernel, 5, "b", TEXT);
	return fx;
}

static inline const char *way_to(const struct fixture *fx, const char *msg_id)
{
	static _Thread_local char text[2048];
	(void)snprintf(text, sizeof text,
		"{\"history\":\"h\",\"head\":\"%s\",\"state_version\":3,\"branch\":\"main.2\","
		"\"fresh\":\"main.2\","
		"\"goes_on\":false,\"node\":{\"id\":\"" NODE
		"\",\"kind\":\"execution\",\"kernel_id\":\"%s\",\"msg_id\":\"%s\","
		"\"execution_count\":2,\"summary\":\"x = 1\"},"
		"\"left\":[{\"id\":\"5\",\"execution_count\":5},{\"id\":\"4\","
		"\"execution_count\":4},{\"id\":\"3\",\"execution_count\":3}],"
		"\"rebuild\":[{\"id\":\"1\",\"execution_count\":1},{\"id\":\"" NODE
		"\",\"execution_count\":2}]}",
		NODE, fx->desk->id, msg_id);
	return text;
}

static inline void tell_way(struct fixture *fx, const char *msg_id)
{
	assert_int_equal(fake_histories_asked(fx->gw.histories)->what, HISTORY_WAY);
	assert_true(fake_histories_tell(fx->gw.histories, way_to(fx, msg_id)));
}

/* Up to the new line, which has not said anything. */
static inline void go_to_revival(
	struct fixture *fx, const struct move_order *order, struct outcome_of *o)
{
	go(fx, order, o);
	tell_way(fx, "b");
	assert_int_equal(fake_kernel_revives(fx->kernel), 5);
	assert_int_equal(o->n, 0);
	assert_state(fx, "busy");
}

static inline void done(struct fixture *fx, struct page *p, struct outcome_of *o)
{
	cJSON_Delete(o->answer);
	page_leave(p, 0);
	fixture_free(fx);
}

/* The kernel works as before, in the same process. */
static inline void assert_not_moved(
	struct fixture *fx, struct page *p, uint64_t epoch, const char *id)
{
	assert_state(fx, "idle");
	assert_int_equal(fx->desk->epoch, epoch);
	assert_string_equal(fx->desk->at.node, "");
	execute(p, id);
	kernel_answers(fx, id, REPLY_OK);
	record_all(fx);
	assert_string_equal(
		fake_histories_run(fx->gw.histories, fake_histories_n(fx->gw.histories) - 1)->at,
		"");
	page_pull_all(fx, p);
	assert_true(page_has_end(p, id, "execute_reply"));
}

#endif
