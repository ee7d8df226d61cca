#include "gateway/spine/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x31657669766f6370) /* and the layout's version */

struct map {
	uint64_t magic, last_client, last_order;
	char acked[CHANNEL_HB][JMSG_ID_MAX];
	struct live_client clients[LIVE_CLIENTS];
	struct live_entry entries[LIVE_ENTRIES];
	struct live_request requests[LIVE_REQUESTS];
};

struct live {
	struct map *map;
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

int live_open(const char *path, struct live **ret, struct err *err)
{
	AUTO(close_fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, E_IO, "%s: %s", path, strerror(errno));
	bool fits = st.st_size == (off_t)sizeof(struct map);
	if (!fits && ftruncate(fd, 0) < 0)
		return err_set(err, E_IO, "%s: %s", path, strerror(errno));
	/* A full disk is seen here, not as a signal at the first store. */
	int rc = posix_fallocate(fd, 0, sizeof(struct map));
	if (rc != 0)
		return err_set(err, E_IO, "%s: %s", path, strerror(rc));
	void *at = mmap(NULL, sizeof(struct map), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return err_set(err, E_IO, "%s: %s", path, strerror(errno));
	struct live *l = xcalloc(1, sizeof *l);
	l->map = at;
	if (l->map->magic != MAGIC) {
		memset(at, 0, sizeof(struct map));
		l->map->magic = MAGIC;
	}
	*ret = l;
	return 0;
}

void live_close(struct live *l)
{
	if (!l)
		return;
	(void)munmap(l->map, sizeof *l->map); /* cannot fail for a mapping of ours */
	free(l);
}

uint64_t live_hash(const struct jmsg *m)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
	for (const char *c = m->msg_id; *c; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(1099511628211);
	return hash ^ (uint64_t)m->channel;
}

void live_took(struct live *l, const struct jmsg *m, uint64_t number, uint64_t to)
{
	if (!l)
		return;
	struct live_entry *e = &l->map->entries[number % LIVE_ENTRIES];
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
		in_order();
		row->number = number;
		return row;
	}
	return NULL;
}

static struct live_request *free_request(struct map *map)
{
	for (size_t i = 0; i < LIVE_REQUESTS; i++)
		if (map->requests[i].order == 0)
			return &map->requests[i];
	return NULL;
}

static struct jmsg *without_content(const struct jmsg *m)
{
	struct jmsg *slim = NULL;
	struct jmsg_source source = {.channel = m->channel};
	source.part[PART_HEADER] = m->part[PART_HEADER];
	source.part[PART_CONTENT] = (struct bytes){.data = (const uint8_t *)"{}", .len = 2};
	return jmsg_new(&source, false, &slim, NULL) == 0 ? slim : NULL;
}

struct live_request *live_request(struct live *l, const struct jmsg *m, uint64_t client)
{
	struct live_request *row = l ? free_request(l->map) : NULL;
	AUTO(jmsg_unrefp) struct jmsg *slim = NULL;
	if (!row)
		return NULL;
	if (m->frame.len > sizeof row->frame)
		m = slim = without_content(m);
	if (!m || m->frame.len > sizeof row->frame)
		return NULL;
	row->client = client;
	row->first = row->replied = row->idled = 0;
	row->is_sent = row->is_running = false;
	row->is_slim = slim != NULL;
	row->len = (uint32_t)m->frame.len;
	memcpy(row->frame, m->frame.data, m->frame.len);
	in_order();
	row->order = ++l->map->last_order;
	return row;
}

void live_request_free(struct live_request *row)
{
	if (row)
		row->order = 0;
}

void live_acked(struct live *l, enum channel channel, const char *msg_id)
{
	if (l)
		(void)copy_text(l->map->acked[channel], JMSG_ID_MAX, msg_id,
			strlen(msg_id)); /* its length was checked */
}

struct live_entry *live_entries(struct live *l)
{
	return l->map->entries;
}

struct live_client *live_clients(struct live *l)
{
	return l->map->clients;
}

struct live_request *live_requests(struct live *l)
{
	return l->map->requests;
}

const char *live_acked_id(const struct live *l, enum channel channel)
{
	return l->map->acked[channel];
}

uint64_t live_last_client(const struct live *l)
{
	return l->map->last_client;
}
