#include "gateway/spine/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x38657669766f6370) /* and the layout's version */
#define ALIGN (64u << 10)		   /* of what is mapped: the largest page there is */

/* What an idle kernel uses of it lies in one page: the entries that are used first are the last. */
struct head {
	uint8_t before[2048]; /* so that the middle of a page is where entries end */
	struct live_entry entries[LIVE_ENTRIES];
	uint64_t magic, last_client, last_order, unkept, restarts, recorded, epoch, kills;
	char acked[CHANNEL_HB][JMSG_ID_MAX];
	struct live_client clients[LIVE_CLIENTS];
};

#define HEAD_BYTES  ((sizeof(struct head) + ALIGN - 1) / ALIGN * ALIGN)
#define BLOCK_BYTES ((LIVE_BLOCK * sizeof(struct live_request) + ALIGN - 1) / ALIGN * ALIGN)

/* The file is the head, then blocks of requests. */
struct live {
	char *path;
	struct head *map;
	struct live_request *blocks[LIVE_BLOCKS];
	size_t n_blocks;
	size_t free_from; /* no row before it is free */
	struct {
		struct live_request **rows; /* [from, to), by `ended` */
		size_t from, to, size;
	} answered; /* rows that wait for the journal's file */
};

/* The compiler keeps the order of stores around it; a process that is killed needs no more. */
static void in_order(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* the mapping stays */
}

/* A full disk is seen here, not as a signal at the first store. */
static void *map_part(int fd, off_t offset, size_t bytes)
{
	int rc = posix_fallocate(fd, offset, (off_t)bytes);
	if (rc != 0) {
		errno = rc;
		return NULL;
	}
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
	if (at == MAP_FAILED)
		return NULL;
	/* Else the first look at a row maps 16 pages around it, of which all but one stay unused;
	 * a system that does not heed it costs memory only. */
	(void)madvise(at, bytes, MADV_RANDOM);
	return at;
}

static bool map_block(struct live *l, int fd)
{
	if (l->n_blocks == LIVE_BLOCKS)
		return false;
	void *at = map_part(fd, (off_t)(HEAD_BYTES + l->n_blocks * BLOCK_BYTES), BLOCK_BYTES);
	if (at)
		l->blocks[l->n_blocks++] = at;
	return at != NULL;
}

static bool is_ours(int fd, off_t size)
{
	uint64_t magic = 0;
	bool fits = size > (off_t)HEAD_BYTES &&
		    (size - (off_t)HEAD_BYTES) % (off_t)BLOCK_BYTES == 0 &&
		    size <= (off_t)(HEAD_BYTES + LIVE_BLOCKS * BLOCK_BYTES);
	off_t at = (off_t)offsetof(struct head, magic);
	return fits && pread(fd, &magic, sizeof magic, at) == (ssize_t)sizeof magic &&
	       magic == MAGIC;
}

static bool map_all(struct live *l, int fd, off_t size)
{
	l->map = map_part(fd, 0, HEAD_BYTES);
	if (!l->map || !map_block(l, fd))
		return false;
	while ((off_t)(HEAD_BYTES + l->n_blocks * BLOCK_BYTES) < size)
		if (!map_block(l, fd))
			return false;
	return true;
}

int live_open(const char *path, struct live **ret, struct err *err)
{
	AUTO(close_fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, E_IO, "%s: %s", path, strerror(errno));
	off_t size = is_ours(fd, st.st_size) ? st.st_size : 0;
	if (size == 0 && ftruncate(fd, 0) < 0)
		return err_set(err, E_IO, "%s: %s", path, strerror(errno));
	struct live *l = xcalloc(1, sizeof *l);
	l->path = xstrdup(path);
	if (!map_all(l, fd, size)) {
		err_set(err, E_IO, "%s: %s", path, strerror(errno));
		live_close(l);
		return E_IO;
	}
	l->map->magic = MAGIC; /* a new file is all zeros, of which no page is in memory yet */
	*ret = l;
	return 0;
}

/* munmap cannot fail for a mapping of ours. */
void live_close(struct live *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_blocks; i++)
		(void)munmap(l->blocks[i], BLOCK_BYTES);
	if (l->map)
		(void)munmap(l->map, HEAD_BYTES);
	free(l->answered.rows);
	free(l->path);
	free(l);
}

uint64_t live_hash_of(const char *msg_id, enum channel channel)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
	for (const char *c = msg_id; *c; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(1099511628211);
	return hash ^ (uint64_t)channel;
}

uint64_t live_hash(const struct jmsg *m)
{
	return live_hash_of(m->msg_id, m->channel);
}

void live_took(struct live *l, const struct jmsg *m, uint64_t number, uint64_t to)
{
	if (!l)
		return;
	struct live_entry *e = &l->map->entries[LIVE_ENTRIES - 1 - number % LIVE_ENTRIES];
	e->number = 0;
	in_order();
	e->to = to;
	e->hash = live_hash(m);
	in_order();
	e->number = number;
}

struct live_client *live_client(struct live *l, uint64_t number, const char *session_id)
{
	if (!l)
		return NULL;
	if (number > l->map->last_client)
		l->map->last_client = number;
	for (size_t i = 0; i < LIVE_CLIENTS; i++) {
		struct live_client *row = &l->map->clients[i];
		if (row->number != 0)
			continue;
		(void)copy_text(row->session_id, sizeof row->session_id, session_id,
			strlen(session_id)); /* its length was checked */
		row->block = 0;
		in_order();
		row->number = number;
		return row;
	}
	return NULL;
}

struct mmsghdr *live_client_writes(struct live_client *row, uint64_t after, size_t block)
{
	row->block = 0;
	in_order();
	row->out.msg_len = 0;
	row->after = after;
	in_order();
	row->block = block;
	return &row->out;
}

void live_client_wrote(struct live_client *row, uint64_t next)
{
	row->next = next;
	in_order();
	row->block = 0;
}

uint64_t live_client_had(const struct live_client *row)
{
	bool went = row->block > 0 && row->out.msg_len == row->block;
	return went ? row->after : row->next;
}

struct live_request *live_request_at(struct live *l, size_t i)
{
	return i < l->n_blocks * LIVE_BLOCK ? &l->blocks[i / LIVE_BLOCK][i % LIVE_BLOCK] : NULL;
}

static bool grow(struct live *l)
{
	AUTO(close_fd) int fd = open(l->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 && map_block(l, fd);
}

static size_t n_answered(const struct live *l)
{
	return l->answered.to - l->answered.from;
}

static bool oldest_gives_way(struct live *l)
{
	if (n_answered(l) == 0)
		return false;
	live_request_free(l, l->answered.rows[l->answered.from++]);
	return true;
}

/* The file does not grow for more than a few answered ones: a client that asks without end for what
 * we answer at once would fill the disk. */
static struct live_request *free_request(struct live *l)
{
	for (;;) {
		for (struct live_request *row; (row = live_request_at(l, l->free_from));
			l->free_from++)
			if (row->order == 0)
				return row;
		if (n_answered(l) <= LIVE_BLOCK && grow(l))
			continue;
		if (!oldest_gives_way(l))
			return NULL;
	}
}

static struct jmsg *without_content(const struct jmsg *m)
{
	struct jmsg *slim = NULL;
	struct jmsg_source source = {.channel = m->channel};
	source.part[PART_HEADER] = m->part[PART_HEADER];
	source.part[PART_CONTENT] = (struct bytes){.data = (const uint8_t *)"{}", .len = 2};
	return jmsg_new(&source, false, &slim, NULL) == 0 ? slim : NULL;
}

static struct live_request *take_row(
	struct live *l, const struct jmsg *m, uint64_t client, bool is_slim, uint64_t of)
{
	struct live_request *row = free_request(l);
	if (!row || m->frame.len > sizeof row->frame)
		return NULL;
	row->client = client;
	row->first = row->busied = row->replied = row->idled = row->ended = row->noted = 0;
	row->asks = 0;
	row->deadline_us = 0;
	row->is_timed_out = false;
	row->of = of;
	row->is_sent = row->is_running = row->is_private = false;
	row->answer_len = 0;
	row->is_slim = is_slim;
	row->len = (uint32_t)m->frame.len;
	memcpy(row->frame, m->frame.data, m->frame.len);
	in_order();
	row->order = ++l->map->last_order;
	return row;
}

struct live_request *live_request(struct live *l, const struct jmsg *m, uint64_t client)
{
	AUTO(jmsg_unrefp) struct jmsg *slim = NULL;
	if (l && m->frame.len > LIVE_REQUEST_BYTES)
		m = slim = without_content(m);
	return l && m ? take_row(l, m, client, slim != NULL, 0) : NULL;
}

struct live_request *live_input(
	struct live *l, const struct jmsg *m, uint64_t client, const struct live_request *of)
{
	return l ? take_row(l, m, client, false, of->order) : NULL;
}

static bool is_of(const struct live_request *row, const struct live_request *block)
{
	return (uintptr_t)row >= (uintptr_t)block &&
	       (uintptr_t)row < (uintptr_t)(block + LIVE_BLOCK);
}

void live_request_free(struct live *l, struct live_request *row)
{
	size_t block = 0;
	if (!row)
		return;
	row->order = 0;
	while (!is_of(row, l->blocks[block]))
		block++;
	size_t i = block * LIVE_BLOCK + (size_t)(row - l->blocks[block]);
	if (i < l->free_from)
		l->free_from = i;
}

static bool answered_has_room(struct live *l)
{
	size_t n = n_answered(l), size = 2 * n + LIVE_BLOCK;
	if (l->answered.to < l->answered.size)
		return true;
	struct live_request **rows = calloc(size, sizeof *rows);
	if (!rows)
		return false;
	for (size_t i = 0; i < n; i++)
		rows[i] = l->answered.rows[l->answered.from + i];
	free(l->answered.rows);
	l->answered.rows = rows;
	l->answered.from = 0;
	l->answered.to = n;
	l->answered.size = size;
	return true;
}

static void stay(struct live *l, struct live_request *row)
{
	if (answered_has_room(l))
		l->answered.rows[l->answered.to++] = row;
	else
		live_request_free(l, row);
}

/* Until the file is so far it stays. */
static uint64_t stays_until(const struct live_request *row)
{
	return row->noted > row->ended ? row->noted : row->ended;
}

void live_request_ended(
	struct live *l, struct live_request *row, uint64_t number, const char *content)
{
	size_t len = content ? strlen(content) : 0;
	if (len > 0 && len <= sizeof row->frame - row->len) {
		memcpy(row->frame + row->len, content, len);
		row->answer_len = (uint32_t)len;
	}
	in_order();
	row->ended = number;
	stay(l, row);
}

void live_request_noted(struct live *l, struct live_request *row, uint64_t number, bool in_line)
{
	row->noted = number;
	if (!in_line)
		stay(l, row);
}

void live_written(struct live *l, uint64_t last)
{
	while (l && n_answered(l) > 0 && stays_until(l->answered.rows[l->answered.from]) <= last)
		(void)oldest_gives_way(l); /* there is one */
}

char *live_answer(const struct live_request *row)
{
	bool fits = row->len <= sizeof row->frame && row->answer_len > 0 &&
		    row->answer_len <= sizeof row->frame - row->len;
	return fits ? strndup((const char *)row->frame + row->len, row->answer_len) : NULL;
}

void live_unkept(struct live *l, int change)
{
	if (l && (change > 0 || l->map->unkept > 0))
		l->map->unkept += (uint64_t)(int64_t)change;
}

uint64_t live_take_unkept(struct live *l)
{
	uint64_t n = l ? l->map->unkept : 0;
	if (l)
		l->map->unkept = 0;
	return n;
}

void live_acked(struct live *l, enum channel channel, const char *msg_id)
{
	if (l)
		(void)copy_text(l->map->acked[channel], JMSG_ID_MAX, msg_id,
			strlen(msg_id)); /* its length was checked */
}

void live_restarts(struct live *l, bool restarts)
{
	if (l)
		l->map->restarts = restarts;
}

bool live_is_restarting(const struct live *l)
{
	return l && l->map->restarts != 0;
}

void live_kills(struct live *l, bool kills)
{
	if (l)
		l->map->kills = kills;
}

bool live_is_killed(const struct live *l)
{
	return l && l->map->kills != 0;
}

void live_recorded(struct live *l, uint64_t number)
{
	if (l)
		l->map->recorded = number;
}

uint64_t live_recorded_to(const struct live *l)
{
	return l ? l->map->recorded : 0;
}

void live_epoch(struct live *l, uint64_t epoch)
{
	if (l)
		l->map->epoch = epoch;
}

uint64_t live_epoch_of(const struct live *l)
{
	return l ? l->map->epoch : 0;
}

struct live_entry *live_entries(struct live *l)
{
	return l->map->entries;
}

struct live_client *live_clients(struct live *l)
{
	return l->map->clients;
}

const char *live_acked_id(const struct live *l, enum channel channel)
{
	l->map->acked[channel][JMSG_ID_MAX - 1] = '\0'; /* not so in a damaged file */
	return l->map->acked[channel];
}

uint64_t live_last_client(const struct live *l)
{
	return l->map->last_client;
}

/* A row that was used holds what the request before it had. */
void live_wipe(struct live *l)
{
	struct live_request *row;
	for (size_t i = 0; l && (row = live_request_at(l, i)); i++) {
		size_t used = row->order > 0 ? (size_t)row->len + row->answer_len : 0;
		if (row->len == 0)
			continue;
		if (used < sizeof row->frame)
			memset(row->frame + used, 0, sizeof row->frame - used);
		if (row->order == 0)
			row->len = row->answer_len = 0;
	}
}
