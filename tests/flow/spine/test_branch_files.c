/* The folder of a branch: what the node held is laid down in one of its own before the kernel
 * stands there; what fails on the way leaves nothing. */
#include "gateway/spine/branches.h"
#include "tests/lib/told_fixture.h"

#define ENTRIES(list)                                                                              \
	"{\"history\":\"h\",\"node\":\"" NODE                                                      \
	"\",\"recorded\":true,\"lost\":[],\"entries\":[" list "]}"
#define HELD	     ENTRIES(ENTRY("a.csv", BLOB_A))
#define NOT_RECORDED "{\"recorded\":false,\"entries\":[],\"lost\":[]}"
#define LOST_FILE                                                                                  \
	ENTRIES("{\"path\":\"big.bin\",\"mode\":\"100644\",\"bytes\":300000000,\"lost\":\"over "   \
		"the budget\"}")
/* No signature is as it was: they are new files. */
#define NEW_FOLDER "{\"digest\":\"d\",\"lost\":[],\"folder\":\"g\"}"

static const struct branch_order plain = {.history = "h", .at = "In[2]", .name = "other"};

static struct fixture *with_two(struct page **ret_page)
{
	struct fixture *fx = with_files();
	*ret_page = page_open(fx, "s1");
	runs(fx, *ret_page, "a", "changed");
	tells(fx, "a", A_CSV);
	runs(fx, *ret_page, "b", "same");
	record_all(fx);
	fake_kernel_parks(fx->kernel, 5, "b", TEXT);
	return fx;
}

static struct kernel *second(const struct fixture *fx)
{
	return fake_kernel(fx->gw.bridge, 1);
}

static void to_fetch(struct fixture *fx, const struct branch_order *order, struct outcome_of *o)
{
	*o = (struct outcome_of){.answer = o->answer};
	branch_begin(fx->gw.kernels, &fx->owner, order, on_moved, o);
	settle(fx);
	tell_way(fx, "b");
	assert_int_equal(fake_histories_asked(fx->gw.histories)->what, HISTORY_FILES);
	assert_string_equal(fake_histories_asked(fx->gw.histories)->node, NODE);
	assert_int_equal(fake_kernel_revives(second(fx)), 0);
}

static void to_lay(struct fixture *fx, const struct branch_order *order, struct outcome_of *o)
{
	to_fetch(fx, order, o);
	assert_true(fake_histories_tell(fx->gw.histories, HELD));
	assert_string_equal(
		fake_kernel_lays(second(fx)), "{\"entries\":[" ENTRY("a.csv", BLOB_A) "]}");
	assert_null(fake_kernel_lays(fx->kernel)); /* the parent's stays */
}

static const char *fidelity_of(const struct outcome_of *o)
{
	return cJSON_GetStringValue(
		cJSON_GetObjectItem(cJSON_GetObjectItem(o->answer, "report"), "fidelity"));
}

static void begins(struct fixture *fx, struct outcome_of *o)
{
	fake_kernel_proves(second(fx), NEW_FOLDER);
	assert_true(fake_histories_tell(
		fx->gw.histories, "{\"history\":\"h\",\"name\":\"other\",\"node\":\"" NODE "\"}"));
	assert_outcome(o, 0);
}

static struct desk *desk_of(struct fixture *fx, const struct outcome_of *o)
{
	const cJSON *kernel = cJSON_GetObjectItem(o->answer, "kernel");
	struct desk *d = NULL;
	assert_int_equal(kernels_find(fx->gw.kernels, &fx->owner,
				 cJSON_GetStringValue(cJSON_GetObjectItem(kernel, "id")), &d, NULL),
		0);
	return d;
}

static void finish(struct fixture *fx, struct page *p, struct outcome_of *o, struct desk *d)
{
	desk_end(d, "", NULL, NULL);
	settle(fx);
	done(fx, p, o);
}

static void assert_nothing(struct fixture *fx, struct page *p, const char *id)
{
	for (int i = 0; i < 3; i++)
		settle(fx);
	assert_int_equal(fake_bridge_kernels(fx->gw.bridge), 1);
	assert_true(list_empty(&fx->gw.kernels->branchings));
	runs(fx, p, id, "same");
	record_all(fx);
}

TEST(branch_files, what_the_node_held_is_laid_in_a_folder_of_its_own)
{
	struct page *p;
	struct fixture *fx = with_two(&p);
	struct outcome_of o = {0};
	to_lay(fx, &plain, &o);
	fake_kernel_needs(second(fx), "[\"" BLOB_A "\"]", true);
	settle(fx);
	assert_string_equal(fake_kernel_given(second(fx)), BLOB_A "=of_a ");
	fake_kernel_room(second(fx));
	fake_kernel_laid(second(fx), NULL);
	assert_int_equal(fake_kernel_revives(second(fx)), 5);
	assert_string_equal(fake_kernel_lay_ended(second(fx)), ""); /* it can still be put back */
	begins(fx, &o);
	assert_string_equal(fidelity_of(&o), "exact");
	assert_string_equal(fake_kernel_lay_ended(second(fx)), "kept");
	/* Its first run has the files of the node, so it carries none. */
	struct desk *d = desk_of(fx, &o);
	struct desk *first = fx->desk;
	struct kernel *its = fx->kernel;
	fx->desk = d;
	fx->kernel = d->kernel;
	struct page *q = page_open(fx, "s2");
	runs(fx, q, "d", "same");
	record_all(fx);
	assert_string_equal(last_run(fx)->at, NODE);
	assert_no_facts(fx);
	page_leave(q, 0);
	fx->desk = first;
	fx->kernel = its;
	finish(fx, p, &o, d);
}

TEST(branch_files, where_nothing_is_recorded_it_is_empty_and_said_so)
{
	struct page *p;
	struct fixture *fx = with_two(&p);
	struct outcome_of o = {0};
	struct branch_order order = plain;
	order.accept = FIDELITY_PARTIAL;
	to_fetch(fx, &order, &o);
	assert_true(fake_histories_tell(fx->gw.histories, NOT_RECORDED));
	assert_int_equal(fake_kernel_revives(second(fx)), 5);
	begins(fx, &o);
	assert_string_equal(fidelity_of(&o), "partial");
	finish(fx, p, &o, desk_of(fx, &o));
}

TEST(branch_files, what_is_not_kept_is_less_than_exact)
{
	struct page *p;
	struct fixture *fx = with_two(&p);
	struct outcome_of o = {0};
	to_fetch(fx, &plain, &o);
	assert_true(fake_histories_tell(fx->gw.histories, LOST_FILE));
	settle(fx);
	assert_outcome(&o, E_PARTIAL);
	assert_nothing(fx, p, "c");
	done(fx, p, &o);
}

TEST(branch_files, what_cannot_be_laid_leaves_nothing)
{
	struct page *p;
	struct fixture *fx = with_two(&p);
	struct outcome_of o = {0};
	to_lay(fx, &plain, &o);
	fake_kernel_laid(second(fx), "no room");
	settle(fx);
	assert_outcome(&o, E_UNAVAILABLE);
	assert_nothing(fx, p, "c");
	/* Nor does a container that says nothing. */
	to_lay(fx, &plain, &o);
	advance(fx, 30001);
	settle(fx);
	assert_outcome(&o, E_TIMEOUT);
	assert_nothing(fx, p, "d");
	/* Nor does one that does not stand up after it. */
	to_lay(fx, &plain, &o);
	fake_kernel_laid(second(fx), NULL);
	fake_kernel_not_revived(second(fx), E_CONFLICT);
	settle(fx);
	assert_outcome(&o, E_PARTIAL);
	assert_nothing(fx, p, "e");
	done(fx, p, &o);
}

RUN(TEST_ROW(branch_files, what_the_node_held_is_laid_in_a_folder_of_its_own),
	TEST_ROW(branch_files, where_nothing_is_recorded_it_is_empty_and_said_so),
	TEST_ROW(branch_files, what_is_not_kept_is_less_than_exact),
	TEST_ROW(branch_files, what_cannot_be_laid_leaves_nothing))
