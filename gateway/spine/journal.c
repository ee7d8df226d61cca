#include "gateway/spine/journal.h"

#include <assert.h>

#include "gateway/spine/journal_file.h"

#define WRITE_AT_ONCE  (64u << 10) /* so much unwritten begins a write at the end of the turn */
#define WRITE_DELAY_MS 100	   /* less waits so long: one write for several small turns */
#define ENTRY_OVERHEAD 384u	   /* struct entry, struct jmsg and the allocator's share */

/* Entries mem_first .. next-1 are in memory, in a ring of pointers; `written` is the last one that
 * is in the file too. What is before mem_first is only in the file, down to `first`. */
struct journal {
	struct journal_setup setup;
	struct journal_file *file;
	struct entry **ring;
	size_t ring_size; /* a power of two, or 0 */
	uint64_t first, mem_first, written, next;
	size_t mem_bytes, unwritten_bytes;
	struct timer write_timer;
	struct list waits; /* struct journal_wait, by number */
	bool over, failed, leaves;
	void (*closed)(void *data);
	void *closed_data;
};

struct entry *entry_new(struct jmsg *m, uint64_t number, uint64_t to)
{
	struct entry *e = calloc(1, sizeof *e);
	if (!e)
		return NULL;
	e->refs = 1;
	e->number = number;
	e->to = to;
	e->msg = jmsg_ref(m);
	return e;
}

struct entry *entry_ref(struct entry *e)
{
	e->refs++;
	return e;
}

void entry_unref(struct entry *e)
{
	if (!e || --e->refs > 0)
		return;
	jmsg_unref(e->msg);
	if (e->legacy.data)
		free((uint8_t *)(uintptr_t)e->legacy.data - JMSG_HEADROOM);
	free(e);
}

static struct entry **slot_of(const struct journal *j, uint64_t number)
{
	return &j->ring[number & (j->ring_size - 1)];
}

/* What the file gets of it, about. */
static size_t weight(const struct entry *e)
{
	return e->msg->frame.len + ENTRY_OVERHEAD;
}

static void drop_oldest(struct journal *j)
{
	struct entry **slot = slot_of(j, j->mem_first);
	j->mem_bytes -= weight(*slot) + (*slot)->legacy.len;
	if (j->mem_first > j->written)
		j->unwritten_bytes -= weight(*slot);
	(*slot)->journal = NULL;
	entry_unref(*slot);
	*slot = NULL;
	j->mem_first++;
}

/* Without a disk the oldest go for good; else only what the file has may leave memory. */
static void trim(struct journal *j)
{
	while (j->mem_bytes > j->setup.memory_max && j->mem_first < j->next &&
		(j->failed || j->mem_first <= j->written))
		drop_oldest(j);
	if (j->failed)
		j->first = j->mem_first;
}

void entry_keep_legacy(struct entry *e, struct bytes legacy, bool binary)
{
	struct journal *j = e->journal;
	assert(!e->legacy.data);
	e->legacy = legacy;
	e->legacy_binary = binary;
	if (!j)
		return;
	j->mem_bytes += legacy.len;
	trim(j);
}

static void tell_pressure(struct journal *j)
{
	bool over = j->over ? j->unwritten_bytes > j->setup.memory_max / 2
			    : j->mem_bytes > j->setup.memory_max;
	if (j->failed)
		over = false;
	if (over == j->over)
		return;
	j->over = over;
	j->setup.on_pressure(j->setup.data, over);
}

static void tell_waits(struct journal *j, uint64_t written)
{
	while (!list_empty(&j->waits)) {
		struct journal_wait *w = CONTAINER_OF(j->waits.next, struct journal_wait, link);
		if (w->number > written)
			return;
		list_remove(&w->link);
		w->cb(w->data);
	}
}

static size_t collect(const struct journal *j, struct entry **ret)
{
	size_t n = 0;
	for (uint64_t at = j->written + 1; at < j->next && n < JOURNAL_BATCH_MAX; at++)
		ret[n++] = *slot_of(j, at);
	return n;
}

static void disk_failed(struct journal *j, const char *text)
{
	j->failed = true;
	timer_stop(j->setup.clock, &j->write_timer);
	j->first = j->mem_first;
	j->unwritten_bytes = 0;
	j->written = j->next - 1;
	trim(j);
	tell_waits(j, UINT64_MAX);
	tell_pressure(j);
	j->setup.on_trouble(j->setup.data, text);
}

static void write_some(struct journal *j)
{
	if (j->failed || j->written + 1 >= j->next || journal_file_busy(j->file))
		return;
	timer_stop(j->setup.clock, &j->write_timer);
	struct entry *batch[JOURNAL_BATCH_MAX];
	size_t n = collect(j, batch);
	/* Without memory again soon: on_pressure bounds what waits. */
	if (journal_file_write(j->file, batch, n) != 0)
		timer_start(j->setup.clock, &j->write_timer, WRITE_DELAY_MS);
}

static void on_write_timer(struct timer *t)
{
	write_some(CONTAINER_OF(t, struct journal, write_timer));
}

static void on_file_closed(void *data);

static void leave_if_written(struct journal *j)
{
	if (journal_file_busy(j->file))
		return;
	if (!j->failed && j->written + 1 < j->next) {
		write_some(j);
		if (!j->failed)
			return;
	}
	j->leaves = false;
	journal_file_close(j->file, on_file_closed, j);
}

static void on_written(void *data, uint64_t last)
{
	struct journal *j = data;
	for (uint64_t at = j->written + 1; at <= last; at++)
		j->unwritten_bytes -= weight(*slot_of(j, at));
	j->written = last;
	uint64_t kept = journal_file_first(j->file);
	if (kept > j->first)
		j->first = kept < j->mem_first ? kept : j->mem_first;
	trim(j);
	tell_waits(j, last);
	if (j->leaves) {
		leave_if_written(j);
		return;
	}
	journal_turn(j);
	tell_pressure(j);
	if (j->setup.on_written)
		j->setup.on_written(j->setup.data, last);
}

static void on_failed(void *data, const struct err *err)
{
	struct journal *j = data;
	disk_failed(j, err->text);
	if (j->leaves)
		leave_if_written(j);
}

static void on_kept(void *data, struct bytes frame, uint64_t number, uint64_t to)
{
	struct journal *j = data;
	if (j->setup.on_kept && to != JOURNAL_TO_ALL && to != JOURNAL_TO_NOBODY)
		j->setup.on_kept(j->setup.data, frame, number, to);
}

int journal_open(const struct journal_setup *setup, struct journal **ret, struct err *err)
{
	struct journal *j = xcalloc(1, sizeof *j);
	j->setup = *setup;
	j->setup.folder = NULL;
	j->first = j->mem_first = j->next = 1;
	list_init(&j->waits);
	timer_init(&j->write_timer, on_write_timer);
	struct journal_file_setup file = {
		.loop = setup->loop,
		.folder = setup->folder,
		.disk_max = setup->disk_max,
		.on_written = on_written,
		.on_failed = on_failed,
		.data = j,
		.on_kept = on_kept,
	};
	int rc = journal_file_open(&file, &j->file, err);
	if (rc != 0) {
		free(j);
		return rc;
	}
	if (setup->goes_on) {
		j->written = journal_file_restore(j->file);
		j->next = j->mem_first = j->written + 1;
		uint64_t first = journal_file_first(j->file);
		j->first = first > 0 ? first : j->next;
	}
	*ret = j;
	return 0;
}

static int ring_grow(struct journal *j, struct err *err)
{
	size_t size = j->ring_size ? j->ring_size * 2 : 64;
	struct entry **ring = calloc(size, sizeof *ring);
	if (!ring)
		return err_set(err, E_NOMEM, "journal: out of memory");
	for (uint64_t at = j->mem_first; at < j->next; at++)
		ring[at & (size - 1)] = *slot_of(j, at);
	free(j->ring);
	j->ring = ring;
	j->ring_size = size;
	return 0;
}

int journal_append(
	struct journal *j, struct jmsg *m, uint64_t to, uint64_t *ret_number, struct err *err)
{
	if (j->next - j->mem_first >= j->ring_size) {
		int rc = ring_grow(j, err);
		if (rc != 0)
			return rc;
	}
	struct entry *e = entry_new(m, j->next, to);
	if (!e)
		return err_set(err, E_NOMEM, "journal: out of memory");
	e->journal = j;
	*slot_of(j, j->next) = e;
	j->mem_bytes += weight(e);
	if (j->failed)
		j->written = j->next;
	else
		j->unwritten_bytes += weight(e);
	*ret_number = j->next++;
	trim(j);
	tell_pressure(j);
	/* Appends from outside a kernel's turn are written in time too. */
	if (!j->failed && !timer_running(&j->write_timer) && !journal_file_busy(j->file))
		timer_start(j->setup.clock, &j->write_timer, WRITE_DELAY_MS);
	return 0;
}

void journal_turn(struct journal *j)
{
	if (j->failed || j->closed || j->written + 1 >= j->next || journal_file_busy(j->file))
		return;
	if (j->unwritten_bytes >= WRITE_AT_ONCE || j->over)
		write_some(j);
	else if (!timer_running(&j->write_timer))
		timer_start(j->setup.clock, &j->write_timer, WRITE_DELAY_MS);
}

static void on_file_closed(void *data)
{
	struct journal *j = data;
	void (*cb)(void *) = j->closed;
	void *cb_data = j->closed_data;
	tell_waits(j, UINT64_MAX);
	while (j->mem_first < j->next)
		drop_oldest(j);
	free(j->ring);
	free(j);
	cb(cb_data);
}

void journal_leave(struct journal *j, void (*cb)(void *data), void *data)
{
	assert(!j->closed);
	timer_stop(j->setup.clock, &j->write_timer);
	j->closed = cb;
	j->closed_data = data;
	j->leaves = true;
	journal_file_keep(j->file);
	leave_if_written(j);
}

void journal_close(struct journal *j, void (*cb)(void *data), void *data)
{
	assert(!j->closed);
	timer_stop(j->setup.clock, &j->write_timer);
	j->closed = cb;
	j->closed_data = data;
	journal_file_close(j->file, on_file_closed, j);
}

uint64_t journal_next(const struct journal *j)
{
	return j->next;
}

uint64_t journal_first(const struct journal *j)
{
	return j->first;
}

uint64_t journal_written(const struct journal *j)
{
	return j->written;
}

const struct journal_file *journal_file_of(const struct journal *j, uint64_t last)
{
	return j->failed || last > j->written ? NULL : j->file;
}

static int replace(struct journal *j, uint64_t number, struct jmsg *m)
{
	struct entry **slot = slot_of(j, number), *old = *slot;
	struct entry *e = entry_new(m, number, old->to);
	if (!e)
		return E_NOMEM;
	assert(m->frame.len == old->msg->frame.len); /* what it counts for stays */
	j->mem_bytes -= old->legacy.len;
	old->journal = NULL;
	e->journal = j;
	*slot = e;
	entry_unref(old);
	return 0;
}

int journal_replace(struct journal *j, bool (*is_one)(void *data, const struct jmsg *m), void *data,
	struct jmsg *(*instead)(const struct jmsg *m), struct err *err)
{
	for (uint64_t at = j->mem_first; at < j->next; at++) {
		const struct entry *e = *slot_of(j, at);
		if (!is_one(data, e->msg))
			continue;
		AUTO(jmsg_unrefp) struct jmsg *m = instead(e->msg);
		if (!m || replace(j, at, m) != 0)
			return err_set(err, E_NOMEM, "journal: out of memory");
	}
	return 0;
}

bool journal_await(struct journal *j, struct journal_wait *w)
{
	if (j->failed || j->closed || j->written + 1 >= j->next)
		return false;
	w->number = j->next - 1;
	list_append(&j->waits, &w->link);
	write_some(j);
	return true;
}

void journal_figures(const struct journal *j, struct journal_figures *ret)
{
	*ret = (struct journal_figures){
		.entries = j->next - 1,
		.memory_bytes = j->mem_bytes,
		.unwritten_bytes = j->unwritten_bytes,
		.disk_bytes = journal_file_bytes(j->file),
		.over = j->over,
		.failed = j->failed,
	};
}

void cursor_init(struct cursor *c, struct journal *j, uint64_t next)
{
	*c = (struct cursor){.journal = j, .next = next};
}

void cursor_done(struct cursor *c)
{
	if (c->reader)
		journal_reader_free(c->reader);
	c->reader = NULL;
}

void cursor_seek(struct cursor *c, uint64_t next)
{
	assert(next <= c->journal->next);
	if (next < c->next)
		cursor_done(c); /* a reader only goes forward */
	c->next = next;
}

static void reader_ready(void *data)
{
	struct cursor *c = data;
	if (c->on_ready)
		c->on_ready(c->data);
}

/* What cannot be read back counts as cut. */
static int next_from_file(struct cursor *c, uint64_t *ret_missed, struct entry **ret)
{
	struct journal *j = c->journal;
	if (!c->reader)
		c->reader = journal_reader_new(j->file, reader_ready, c);
	int rc = journal_reader_next(c->reader, c->next, ret, NULL);
	if (rc == 1) {
		c->next++;
		return 1;
	}
	if (rc < 0) {
		*ret_missed += j->mem_first - c->next;
		c->next = j->mem_first;
	}
	return rc;
}

int cursor_next(struct cursor *c, uint64_t *ret_missed, struct entry **ret)
{
	struct journal *j = c->journal;
	if (c->next < j->first) {
		*ret_missed += j->first - c->next;
		c->next = j->first;
	}
	if (c->next < j->mem_first) {
		int rc = next_from_file(c, ret_missed, ret);
		if (rc >= 0)
			return rc;
	}
	cursor_done(c);
	if (c->next >= j->next)
		return 0;
	*ret = entry_ref(*slot_of(j, c->next++));
	return 1;
}
