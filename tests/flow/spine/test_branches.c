/* A branch begins beside the kernel that was parked: step by step, what fails at each of them, and
 * what a gateway that is killed there leaves: a kernel that is whole, or nothing. */
#include "gateway/spine/branches.h"
#include "tests/lib/moves_fixture.h"

#define OTHER_FOLDER                                                                               \
	"{\"digest\":\"d\",\"lost\":[],\"folder\":\"g\",\"paths\":[{\"name\":\"p\","               \
	"\"kind\":\"path\",\"reason\":\"/work/x\"}]}"

static const struct branch_order plain = {.history = "h", .at = "In[2]", .name = "other"};

static void begin(struct fixture *fx, const struct branch_order *order, struct outcome_of *o)
{
	*o = (struct outcome_of){.answer = o->answer};
	branch_begin(fx->gw.kernels, &fx->owner, order, on_moved, o);
	assert_int_equal(o->n, 0);
	settle(fx);
}

static size_t kernels_of(const struct fixture *fx)
{
	return fake_bridge_kernels(fx->gw.bridge);
}

/* The one that is to be. */
static struct kernel *second(const struct fixture *fx)
{
	return fake_kernel(fx->gw.bridge, 1);
}

static void begin_to_revival(
	struct fixture *fx, const struct branch_order *order, struct outcome_of *o)
{
	begin(fx, order, o);
	tell_way(fx, "b");
	assert_int_equal(kernels_of(fx), 2);
	assert_int_equal(fake_kernel_revives(second(fx)), 5);
	assert_int_equal(o->n, 0);
	assert_int_equal(kernels_count(fx->gw.kernels, &fx->owner), 1); /* nobody sees it */
	assert_state(fx, "idle");
}

static void named(struct fixture *fx, const char *name)
{
	char json[128];
	(void)snprintf(json, sizeof json,
		"{\"history\":\"h\",\"name\":\"%s\",\"node\":\"" NODE "\"}", name);
	assert_int_equal(fake_histories_asked(fx->gw.histories)->what, HISTORY_BRANCH);
	assert_string_equal(fake_histories_asked(fx->gw.histories)->node, NODE);
	assert_true(fake_histories_tell(fx->gw.histories, json));
}

static struct desk *desk_of(struct fixture *fx, const struct outcome_of *o)
{
	const cJSON *kernel = cJSON_GetObjectItem(o->answer, "kernel");
	struct desk *d = NULL;
	const char *id = cJSON_GetStringValue(cJSON_GetObjectItem(kernel, "id"));
	assert_non_null(id);
	assert_int_equal(kernels_find(fx->gw.kernels, &fx->owner, id, &d, NULL), 0);
	return d;
}

static size_t rows_of(const struct fixture *fx)
{
	char path[128];
	size_t n = 0;
	(void)snprintf(path, sizeof path, "%s/kernels", fx->folder);
	DIR *dir = opendir(path);
	for (struct dirent *d; dir && (d = readdir(dir));)
		n += d->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

/* Nothing of it is left, and what runs goes on. */
static void assert_nothing(struct fixture *fx, struct page *p, const char *id)
{
	for (int i = 0; i < 3; i++)
		settle(fx);
	assert_int_equal(kernels_of(fx), 1);
	assert_int_equal(kernels_count(fx->gw.kernels, &fx->owner), 1);
	assert_int_equal(rows_of(fx), 1);
	assert_int_equal(files_left(fx), 1);
	assert_int_equal(fx->gw.kernels->n_alive, 1);
	assert_true(list_empty(&fx->gw.kernels->branchings));
	assert_state(fx, "idle");
	execute(p, id);
	kernel_answers(fx, id, REPLY_OK);
	record_all(fx);
}

static void end_second(struct fixture *fx, struct desk *d)
{
	desk_end(d, "", NULL, NULL);
	settle(fx);
	(void)fx;
}

TEST(branches, a_kernel_of_its_own_beside_one_that_goes_on)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	begin_to_revival(fx, &plain, &o);
	execute(p, "d"); /* meanwhile */
	kernel_answers(fx, "d", REPLY_OK);
	fake_kernel_proves(second(fx), TEXT);
	assert_int_equal(o.n, 0);
	assert_int_equal(rows_of(fx), 1);
	named(fx, "other");
	assert_outcome(&o, 0);
	assert_string_equal(member(&o, "name"), "other");
	assert_string_equal(member(&o, "node"), NODE);
	assert_string_equal(member(&o, "restored_by"), "parked");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(
				    cJSON_GetObjectItem(o.answer, "report"), "fidelity")),
		"exact");
	struct desk *d = desk_of(fx, &o);
	assert_int_equal(rows_of(fx), 2);
	assert_string_equal(kernel_folder(d->kernel), "/branches/other");
	assert_string_equal(d->at.node, NODE);
	assert_string_equal(d->at.branch, "other");
	assert_string_equal(scribe_history(d), "h");
	/* Each runs for itself, and its first run begins the branch. */
	struct fixture other = *fx;
	other.desk = d;
	other.kernel = d->kernel;
	struct page *q = page_open(&other, "s2");
	execute(q, "e");
	kernel_answers(&other, "e", REPLY_OK);
	execute(p, "f");
	kernel_answers(fx, "f", REPLY_OK);
	record_all(fx);
	bool seen = false;
	for (size_t i = 0; i < fake_histories_n(fx->gw.histories); i++) {
		const struct fake_run *run = fake_histories_run(fx->gw.histories, i);
		bool is_e = strcmp(run->request->msg_id, "e") == 0;
		seen = seen || is_e;
		assert_string_equal(run->at, is_e ? NODE : "");
		assert_string_equal(run->branch, is_e ? "other" : "");
		assert_string_equal(run->wanted, is_e ? "h" : "");
	}
	assert_true(seen);
	page_leave(q, 0);
	end_second(fx, d);
	assert_nothing(fx, p, "g");
	done(fx, p, &o);
}

TEST(branches, a_name_alone)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	struct branch_order order = plain;
	order.without_kernel = true;
	begin(fx, &order, &o);
	tell_way(fx, "b");
	named(fx, "other");
	assert_outcome(&o, 0);
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(o.answer, "kernel")));
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(o.answer, "restored_by")));
	/* Also where nothing is parked. */
	begin(fx, &order, &o);
	tell_way(fx, "a");
	named(fx, "other.2");
	assert_outcome(&o, 0);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(
				    cJSON_GetObjectItem(o.answer, "report"), "fidelity")),
		"code-only");
	assert_nothing(fx, p, "d");
	done(fx, p, &o);
}

TEST(branches, what_is_refused_at_once)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	struct branch_order order = plain;
	order.own_container = true;
	begin(fx, &order, &o);
	assert_outcome(&o, E_UNAVAILABLE);
	assert_non_null(strstr(o.text, "snapshots"));
	order = plain;
	order.name = "a/b";
	begin(fx, &order, &o);
	assert_outcome(&o, E_INVALID);
	assert_nothing(fx, p, "d");
	done(fx, p, &o);
}

TEST(branches, nothing_is_parked)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	begin(fx, &plain, &o);
	tell_way(fx, "a");
	assert_outcome(&o, E_PARTIAL);
	const cJSON *report = cJSON_GetObjectItem(o.answer, "report");
	const cJSON *lost = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "lost"), 0);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(lost, "rebuild")), 2);
	assert_nothing(fx, p, "d");
	done(fx, p, &o);
}

TEST(branches, less_than_is_accepted)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	begin_to_revival(fx, &plain, &o);
	fake_kernel_proves(second(fx), OTHER_FOLDER);
	assert_outcome(&o, E_PARTIAL);
	assert_non_null(strstr(
		cJSON_GetStringValue(cJSON_GetArrayItem(
			cJSON_GetObjectItem(cJSON_GetObjectItem(o.answer, "report"), "notes"), 0)),
		"/branches/other, and empty"));
	assert_nothing(fx, p, "d");
	struct branch_order order = plain;
	order.accept = FIDELITY_PARTIAL;
	begin_to_revival(fx, &order, &o);
	fake_kernel_proves(second(fx), OTHER_FOLDER);
	named(fx, "other");
	assert_outcome(&o, 0);
	const cJSON *report = cJSON_GetObjectItem(o.answer, "report");
	const cJSON *path = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "approximate"), 0);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(path, "name")), "p");
	end_second(fx, desk_of(fx, &o));
	assert_nothing(fx, p, "e");
	done(fx, p, &o);
}

/* Where it stops, and what is answered. */
TEST(branches, each_step_fails_and_leaves_nothing)
{
	enum { NO_NODE, NO_PLACE, NO_START, NOT_REVIVED, BUSY, TAKEN, STEPS };
	static const int codes[STEPS] = {
		E_NOT_FOUND, E_CAPACITY, E_UNAVAILABLE, E_PARTIAL, E_UNAVAILABLE, E_CONFLICT};
	for (int step = 0; step < STEPS; step++) {
		struct page *p;
		struct fixture *fx = with_cells(&p);
		struct outcome_of o = {0};
		begin(fx, &plain, &o);
		if (step == NO_PLACE)
			fx->gw.config.max_kernels = 1;
		if (step == NO_START)
			(void)fault_arm(fake_bridge_fault(fx->gw.bridge), 1);
		if (step == NO_NODE)
			(void)fake_histories_refuse(fx->gw.histories, E_NOT_FOUND);
		else
			tell_way(fx, "b");
		if (step == NOT_REVIVED || step == BUSY)
			fake_kernel_not_revived(
				second(fx), step == BUSY ? E_UNAVAILABLE : E_TIMEOUT);
		if (step == TAKEN) {
			fake_kernel_proves(second(fx), TEXT);
			assert_true(fake_histories_refuse(fx->gw.histories, E_CONFLICT));
		}
		assert_outcome(&o, codes[step]);
		fx->gw.config.max_kernels = 3;
		*fake_bridge_fault(fx->gw.bridge) = (struct fault){0};
		assert_nothing(fx, p, "d");
		done(fx, p, &o);
	}
}

TEST(branches, three_live_and_the_fourth_is_refused)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	struct desk *made[2];
	fx->gw.config.max_kernels = 10;
	for (unsigned i = 0; i < 2; i++) {
		begin(fx, &plain, &o);
		tell_way(fx, "b");
		fake_kernel_proves(fake_kernel(fx->gw.bridge, 1 + i), TEXT);
		named(fx, i == 0 ? "one" : "two");
		assert_outcome(&o, 0);
		made[i] = desk_of(fx, &o);
	}
	begin(fx, &plain, &o);
	tell_way(fx, "b");
	assert_outcome(&o, E_CAPACITY);
	settle(fx);
	assert_int_equal(kernels_of(fx), 3);
	end_second(fx, made[0]);
	begin(fx, &plain, &o);
	tell_way(fx, "b");
	fake_kernel_proves(fake_kernel(fx->gw.bridge, 2), TEXT);
	named(fx, "three");
	assert_outcome(&o, 0);
	end_second(fx, desk_of(fx, &o));
	end_second(fx, made[1]);
	assert_nothing(fx, p, "d");
	done(fx, p, &o);
}

/* One after the other, so that each knows what the other was called. */
TEST(branches, two_at_once_wait_for_each_other)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0}, later = {0};
	begin(fx, &plain, &o);
	begin(fx, &plain, &later);
	tell_way(fx, "b");
	fake_kernel_proves(second(fx), TEXT);
	assert_int_equal(kernels_of(fx), 2);
	named(fx, "other");
	assert_outcome(&o, 0);
	settle(fx);
	assert_int_equal(later.n, 0);
	assert_int_equal(fake_histories_asked(fx->gw.histories)->what, HISTORY_WAY);
	assert_string_equal(fake_histories_asked(fx->gw.histories)->name, "other");
	assert_true(fake_histories_refuse(fx->gw.histories, E_CONFLICT));
	assert_outcome(&later, E_CONFLICT);
	end_second(fx, desk_of(fx, &o));
	assert_nothing(fx, p, "d");
	cJSON_Delete(later.answer);
	done(fx, p, &o);
}

TEST(branches, what_is_parked_in_the_container_is_there_for_both)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	begin_to_revival(fx, &plain, &o);
	fake_kernel_proves(second(fx), TEXT);
	named(fx, "other");
	struct desk *d = desk_of(fx, &o);
	/* Undo of its first cell leads to a node of the line that it came from. */
	desk_checkout(d, &fine, on_moved, &o);
	settle(fx);
	tell_way(fx, "b");
	assert_int_equal(fake_kernel_revives(d->kernel), 5);
	assert_int_equal(fake_kernel_revives(fx->kernel), 0);
	fake_kernel_not_revived(d->kernel, E_TIMEOUT);
	end_second(fx, d);
	assert_nothing(fx, p, "d");
	done(fx, p, &o);
}

/* ---- deaths ---- */

TEST(branches, one_that_dies_before_it_is_known_is_begun_anew_as_any_other)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	begin_to_revival(fx, &plain, &o);
	fake_kernel_proves(second(fx), TEXT);
	fake_kernel_die(second(fx), DEATH_SIGNAL, 9, "killed");
	assert_int_equal(o.n, 0);
	named(fx, "other");
	assert_outcome(&o, 0);
	struct desk *d = desk_of(fx, &o);
	settle(fx);
	assert_int_equal(fake_kernel_restarts(d->kernel), 2);
	assert_string_equal(d->at.node, ""); /* what follows is at the root */
	fake_kernel_ready(d->kernel);
	assert_string_equal(desk_state(d), "idle");
	end_second(fx, d);
	assert_nothing(fx, p, "d");
	done(fx, p, &o);
}

TEST(branches, the_gateway_ends_on_the_way)
{
	for (int step = 0; step < 3; step++) {
		struct page *p;
		struct fixture *fx = with_cells(&p);
		struct outcome_of o = {0};
		begin(fx, &plain, &o);
		if (step > 0)
			tell_way(fx, "b");
		if (step > 1)
			fake_kernel_proves(second(fx), TEXT);
		page_leave(p, 0);
		fixture_free(fx);
		assert_outcome(&o, E_UNAVAILABLE);
		cJSON_Delete(o.answer);
	}
}

TEST(branches, a_killed_gateway_leaves_it_whole_or_not_at_all)
{
	for (int step = 0; step < 4; step++) {
		struct page *p;
		struct fixture *fx = with_cells(&p);
		struct outcome_of o = {0};
		begin(fx, &plain, &o);
		if (step > 0)
			tell_way(fx, "b");
		if (step > 1)
			fake_kernel_proves(second(fx), TEXT);
		if (step > 2)
			named(fx, "other");
		struct fixture *next = after_a_kill(fx);
		assert_int_equal(
			kernels_count(next->gw.kernels, next->desk->owner), step > 2 ? 2 : 1);
		assert_int_equal(fake_bridge_kernels(next->gw.bridge), step > 2 ? 2 : 1);
		struct desk *d = NULL;
		if (step > 2)
			assert_int_equal(kernels_find(next->gw.kernels, next->desk->owner,
						 desk_of(fx, &o)->id, &d, NULL),
				0);
		if (d) {
			assert_string_equal(d->at.node, NODE);
			assert_string_equal(d->at.branch, "other");
		}
		next_free(next);
		if (step == 0)
			tell_way(fx, "a");
		else if (step == 1)
			fake_kernel_not_revived(second(fx), E_GONE);
		else if (step == 2)
			assert_true(fake_histories_refuse(fx->gw.histories, E_IO));
		done(fx, p, &o);
	}
}

/* ---- by a cell ---- */

TEST(branches, a_cell_asks)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	execute(p, "m");
	struct jmsg *m = kernel_takes(fx, "m");
	say_status(fx->kernel, m, "busy");
	fake_kernel_ask(fx->kernel, 1, "branch", "In[2] other");
	settle(fx);
	const struct history_question *q = fake_histories_asked(fx->gw.histories);
	assert_string_equal(q->node, "In[2]");
	assert_string_equal(q->name, "other");
	assert_string_equal(q->kernel_id, fx->desk->id);
	/* One at a time of a kernel: a guest asks as fast as it likes. */
	fake_kernel_ask(fx->kernel, 7, "branch", "In[2] other");
	assert_int_equal(strncmp(fake_kernel_answer(fx->kernel, 7), "busy ", 5), 0);
	tell_way(fx, "b");
	fake_kernel_proves(second(fx), TEXT);
	named(fx, "other");
	const char *answer = fake_kernel_answer(fx->kernel, 1);
	assert_non_null(strstr(answer, "ok {\"name\":\"other\""));
	say_reply(fx->kernel, m, REPLY_OK);
	say_status(fx->kernel, m, "idle");
	fake_kernel_turn(fx->kernel);
	record_all(fx);
	jmsg_unref(m);
	/* What cannot be is a sentence, with what to run again. */
	fake_kernel_ask(fx->kernel, 2, "branch", "");
	settle(fx);
	assert_string_equal(fake_histories_asked(fx->gw.histories)->node, "HEAD");
	tell_way(fx, "a");
	answer = fake_kernel_answer(fx->kernel, 2);
	assert_int_equal(strncmp(answer, "partial ", 8), 0);
	assert_non_null(strstr(answer, "To be run again, in this order: In[1]"));
	done(fx, p, &o);
}

TEST(branches, who_stands_where)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	AUTO(buf_done) struct buf stands;
	begin_to_revival(fx, &plain, &o);
	fake_kernel_proves(second(fx), TEXT);
	named(fx, "other");
	struct desk *d = desk_of(fx, &o);
	branches_standing(fx->gw.kernels, &fx->owner, &stands);
	char expected[256];
	int len = snprintf(expected, sizeof expected, "%s " NODE " other\n", d->id);
	assert_int_equal(stands.len, len);
	assert_memory_equal(stands.data, expected, (size_t)len);
	const struct owner bob = {.name = "bob"};
	AUTO(buf_done) struct buf others;
	branches_standing(fx->gw.kernels, &bob, &others);
	assert_int_equal(others.len, 0);
	/* Nor does another owner's branch begin from what is parked here. */
	branch_begin(fx->gw.kernels, &bob, &plain, on_moved, &o);
	o.n = 0;
	settle(fx);
	tell_way(fx, "b");
	assert_outcome(&o, E_PARTIAL);
	end_second(fx, d);
	assert_nothing(fx, p, "d");
	done(fx, p, &o);
}

RUN(TEST_ROW(branches, a_kernel_of_its_own_beside_one_that_goes_on),
	TEST_ROW(branches, a_name_alone), TEST_ROW(branches, what_is_refused_at_once),
	TEST_ROW(branches, nothing_is_parked), TEST_ROW(branches, less_than_is_accepted),
	TEST_ROW(branches, each_step_fails_and_leaves_nothing),
	TEST_ROW(branches, three_live_and_the_fourth_is_refused),
	TEST_ROW(branches, two_at_once_wait_for_each_other),
	TEST_ROW(branches, what_is_parked_in_the_container_is_there_for_both),
	TEST_ROW(branches, one_that_dies_before_it_is_known_is_begun_anew_as_any_other),
	TEST_ROW(branches, the_gateway_ends_on_the_way),
	TEST_ROW(branches, a_killed_gateway_leaves_it_whole_or_not_at_all),
	TEST_ROW(branches, a_cell_asks), TEST_ROW(branches, who_stands_where))
