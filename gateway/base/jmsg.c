#include "gateway/base/jmsg.h"

#include <string.h>
#include <time.h>

#include "gateway/base/clock.h"
#include "gateway/base/crypto.h"
#include "gateway/base/json.h"

static const char *const channel_names[CHANNEL_COUNT] = {
	[CHANNEL_SHELL] = "shell",
	[CHANNEL_IOPUB] = "iopub",
	[CHANNEL_STDIN] = "stdin",
	[CHANNEL_CONTROL] = "control",
	[CHANNEL_HB] = "hb",
};

static const char *const part_names[JMSG_PARTS] = {
	"header", "parent_header", "metadata", "content"};

enum {
	FIELD_ID,
	FIELD_TYPE,
	FIELD_SESSION,
	FIELD_SUBSHELL,
	FIELD_PARENT_ID,
	FIELD_PARENT_TYPE,
	FIELD_PARENT_SESSION,
	FIELDS
};

/* A message before it has its storage. */
struct draft {
	const struct jmsg_source *source;
	struct bytes part[JMSG_PARTS];
	struct buf mended[JMSG_PARTS];
	char field[FIELDS][JMSG_ID_MAX];
};

const char *channel_name(enum channel c)
{
	return c < CHANNEL_COUNT ? channel_names[c] : "none";
}

enum channel channel_parse(struct bytes name)
{
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		if (bytes_equal(name, channel_names[i]))
			return (enum channel)i;
	return CHANNEL_COUNT;
}

static void draft_done(struct draft *d)
{
	for (unsigned i = 0; i < JMSG_PARTS; i++)
		buf_done(&d->mended[i]);
}

static bool is_null(struct bytes b)
{
	while (b.len > 0 && b.data[0] <= ' ') {
		b.data++;
		b.len--;
	}
	while (b.len > 0 && b.data[b.len - 1] <= ' ')
		b.len--;
	return b.len == 0 || bytes_equal(b, "null");
}

/* Validates one part and reads the wanted members of it. */
static int draft_part(
	struct draft *d, unsigned i, bool mend, struct json_want *wants, size_t n, struct err *err)
{
	struct bytes part = d->source->part[i];
	bool optional = i == PART_PARENT || i == PART_METADATA;
	if (optional && is_null(part))
		part = (struct bytes){(const uint8_t *)"{}", 2};
	int status = json_scan(part, wants, n, err);
	if (status != 0 && mend) {
		status = json_mend(part, &d->mended[i], err);
		part = (struct bytes){d->mended[i].data, d->mended[i].len};
		if (status == 0 && n > 0)
			status = json_scan(part, wants, n, err);
	}
	if (status != 0) {
		err_wrap(err, "%s", part_names[i]);
		return status;
	}
	if (!json_is_object(part))
		return err_set(err, E_INVALID, "%s is not a JSON object", part_names[i]);
	d->part[i] = part;
	return 0;
}

/* A header that we route by must be readable; what a parent header holds is only compared. */
static int draft_header(struct draft *d, bool mend, struct err *err)
{
	struct json_want wants[] = {
		{.key = "msg_id"}, {.key = "msg_type"}, {.key = "session"}, {.key = "subshell_id"}};
	int status = draft_part(d, PART_HEADER, mend, wants, ARRAY_LEN(wants), err);
	if (status != 0)
		return status;
	for (unsigned i = 0; i < ARRAY_LEN(wants); i++) {
		bool needed = i <= FIELD_TYPE;
		bool is_text = wants[i].value.len > 0 && wants[i].value.data[0] == '"';
		if (!is_text && !needed)
			continue;
		if (!json_text(wants[i].value, d->field[i], JMSG_ID_MAX))
			return err_set(err, E_INVALID,
				"header: %s must be a string of less than %d bytes without NUL",
				wants[i].key, JMSG_ID_MAX);
		if (needed && d->field[i][0] == '\0')
			return err_set(err, E_INVALID, "header: %s is empty", wants[i].key);
	}
	return 0;
}

static int draft_parent(struct draft *d, bool mend, struct err *err)
{
	struct json_want wants[] = {{.key = "msg_id"}, {.key = "msg_type"}, {.key = "session"}};
	int status = draft_part(d, PART_PARENT, mend, wants, ARRAY_LEN(wants), err);
	for (unsigned i = 0; status == 0 && i < ARRAY_LEN(wants); i++)
		if (!json_text(wants[i].value, d->field[FIELD_PARENT_ID + i], JMSG_ID_MAX))
			d->field[FIELD_PARENT_ID + i][0] = '\0';
	return status;
}

static int draft_read(struct draft *d, bool mend, struct err *err)
{
	int status = draft_header(d, mend, err);
	if (status == 0)
		status = draft_parent(d, mend, err);
	if (status == 0)
		status = draft_part(d, PART_METADATA, mend, NULL, 0, err);
	if (status == 0)
		status = draft_part(d, PART_CONTENT, mend, NULL, 0, err);
	return status;
}

/* E_TOO_BIG or the length of the frame in ret_len. Nothing can overflow: each addend is checked. */
static int draft_frame_len(const struct draft *d, size_t *ret_len, struct err *err)
{
	const struct jmsg_source *s = d->source;
	if (s->n_buffers > JMSG_BUFFERS_MAX)
		return err_set(err, E_TOO_BIG, "a message of %zu buffers (%d are allowed)",
			s->n_buffers, JMSG_BUFFERS_MAX);
	size_t len = 8 * (s->n_buffers + 7) + strlen(channel_name(s->channel));
	for (size_t i = 0; i < JMSG_PARTS + s->n_buffers; i++) {
		size_t more = i < JMSG_PARTS ? d->part[i].len : s->buffers[i - JMSG_PARTS].len;
		if (more > JMSG_FRAME_MAX - len)
			return err_set(
				err, E_TOO_BIG, "a message of more than %u bytes", JMSG_FRAME_MAX);
		len += more;
	}
	*ret_len = len;
	return 0;
}

static void put_u64(uint8_t *at, uint64_t value)
{
	for (unsigned i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_u64(const uint8_t *at)
{
	uint64_t value = 0;
	for (unsigned i = 8; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

/* Fills frame (see wire-contract 1.8) and points m's parts and buffers into it. */
static void put_frame(struct jmsg *m, const struct draft *d, uint8_t *frame)
{
	const struct jmsg_source *s = d->source;
	const char *channel = channel_name(s->channel);
	uint64_t n = 6 + s->n_buffers, at = 8 * (n + 1);
	uint8_t *offset = frame;
	put_u64(offset, n);
	put_u64(offset += 8, at);
	memcpy(frame + at, channel, strlen(channel));
	at += strlen(channel);
	for (size_t i = 0; i < JMSG_PARTS + s->n_buffers; i++) {
		struct bytes b = i < JMSG_PARTS ? d->part[i] : s->buffers[i - JMSG_PARTS];
		struct bytes *ret = i < JMSG_PARTS ? &m->part[i] : &m->buffers[i - JMSG_PARTS];
		put_u64(offset += 8, at);
		if (b.len > 0)
			memcpy(frame + at, b.data, b.len);
		*ret = (struct bytes){frame + at, b.len};
		at += b.len;
	}
	put_u64(offset + 8, at);
}

static const char *put_text(char **at, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = memcpy(*at, text, size);
	*at += size;
	return copy;
}

/* One allocation: struct, buffers, texts, head room, frame. */
static int draft_build(const struct draft *d, struct jmsg **ret_msg, struct err *err)
{
	size_t frame_len = 0, texts = 0;
	int status = draft_frame_len(d, &frame_len, err);
	if (status != 0)
		return status;
	for (unsigned i = 0; i < FIELDS; i++)
		texts += strlen(d->field[i]) + 1;
	size_t buffers = d->source->n_buffers * sizeof(struct bytes);
	struct jmsg *m = malloc(sizeof *m + buffers + texts + JMSG_HEADROOM + frame_len);
	if (!m)
		return err_set(err, E_NOMEM, "a message of %zu bytes: out of memory", frame_len);
	*m = (struct jmsg){.refs = 1, .channel = d->source->channel};
	m->n_buffers = d->source->n_buffers;
	m->buffers = (struct bytes *)(m + 1);
	char *text = (char *)(m->buffers + m->n_buffers);
	const char **field[FIELDS] = {&m->msg_id, &m->msg_type, &m->session, &m->subshell_id,
		&m->parent_id, &m->parent_type, &m->parent_session};
	for (unsigned i = 0; i < FIELDS; i++)
		*field[i] = put_text(&text, d->field[i]);
	uint8_t *frame = (uint8_t *)text + JMSG_HEADROOM;
	memset(text, 0, JMSG_HEADROOM);
	m->frame = (struct bytes){frame, frame_len};
	put_frame(m, d, frame);
	*ret_msg = m;
	return 0;
}

int jmsg_new(const struct jmsg_source *source, bool mend, struct jmsg **ret_msg, struct err *err)
{
	AUTO(draft_done) struct draft d;
	d.source = source;
	for (unsigned i = 0; i < JMSG_PARTS; i++)
		buf_init(&d.mended[i], JMSG_FRAME_MAX);
	for (unsigned i = 0; i < FIELDS; i++)
		d.field[i][0] = '\0';
	int status = draft_read(&d, mend, err);
	if (status == 0)
		status = draft_build(&d, ret_msg, err);
	return status;
}

/* The count of offsets if every one of them can be believed, else 0. */
static size_t checked_offsets(struct bytes frame)
{
	if (frame.len < 8)
		return 0;
	uint64_t n = get_u64(frame.data);
	if (n < 6 || n > 6 + JMSG_BUFFERS_MAX || 8 * (n + 1) > frame.len)
		return 0;
	uint64_t last = 8 * (n + 1);
	for (size_t i = 1; i <= n; i++) {
		uint64_t offset = get_u64(frame.data + 8 * i);
		if (offset < last || offset > frame.len)
			return 0;
		last = offset;
	}
	return (size_t)n;
}

/* Slice i of a frame whose offsets were checked. */
static struct bytes frame_slice(struct bytes frame, size_t i)
{
	uint64_t from = get_u64(frame.data + 8 * (i + 1)), to = get_u64(frame.data + 8 * (i + 2));
	return (struct bytes){frame.data + from, (size_t)(to - from)};
}

int jmsg_from_frame(struct bytes frame, struct jmsg **ret_msg, struct err *err)
{
	size_t n = checked_offsets(frame);
	if (n == 0)
		return err_set(err, E_INVALID, "a frame of %zu bytes whose offsets are malformed",
			frame.len);
	struct jmsg_source source = {.channel = channel_parse(frame_slice(frame, 0))};
	if (source.channel == CHANNEL_COUNT)
		return err_set(err, E_INVALID, "a frame for a channel that does not exist");
	for (unsigned i = 0; i < JMSG_PARTS; i++)
		source.part[i] = frame_slice(frame, 1 + i);
	source.n_buffers = n - 6;
	AUTO(freep) struct bytes *buffers = NULL;
	if (source.n_buffers > 0) {
		buffers = calloc(source.n_buffers, sizeof *buffers);
		if (!buffers)
			return err_set(err, E_NOMEM, "a message's buffers: out of memory");
	}
	for (size_t i = 0; i < source.n_buffers; i++)
		buffers[i] = frame_slice(frame, 1 + JMSG_PARTS + i);
	source.buffers = buffers;
	return jmsg_new(&source, false, ret_msg, err);
}

struct jmsg *jmsg_ref(struct jmsg *m)
{
	m->refs++;
	return m;
}

void jmsg_unref(struct jmsg *m)
{
	if (m && --m->refs == 0)
		free(m);
}

void jmsg_unrefp(struct jmsg **m)
{
	jmsg_unref(*m);
	*m = NULL;
}

static int make_header(struct buf *b, const char *msg_type, const char *session, struct err *err)
{
	char id[UUID_SIZE], date[CLOCK_STAMP_SIZE];
	struct timespec now;
	crypto_uuid(id);
	clock_gettime(CLOCK_REALTIME, &now);
	clock_stamp((int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000, date);
	/* Every result is in the latch. */
	(void)buf_addf(b, "{\"msg_id\":\"%s\",\"username\":\"coppice\",\"session\":", id);
	(void)buf_add_json_string(b, session, strlen(session));
	(void)buf_addf(b, ",\"date\":\"%s\",\"msg_type\":", date);
	(void)buf_add_json_string(b, msg_type, strlen(msg_type));
	(void)buf_add_text(b, ",\"version\":\"5.3\"}");
	return buf_check(b, "header", err);
}

int jmsg_make(enum channel channel, const char *msg_type, const char *session,
	const struct jmsg *parent, const char *content, struct jmsg **ret_msg, struct err *err)
{
	AUTO(buf_done) struct buf header;
	buf_init(&header, 16 * JMSG_ID_MAX); /* an id may grow sixfold by its escapes */
	int status = make_header(&header, msg_type, session, err);
	if (status != 0)
		return status;
	struct jmsg_source source = {.channel = channel};
	source.part[PART_HEADER] = (struct bytes){header.data, header.len};
	if (parent)
		source.part[PART_PARENT] = parent->part[PART_HEADER];
	source.part[PART_CONTENT] = (struct bytes){(const uint8_t *)content, strlen(content)};
	return jmsg_new(&source, false, ret_msg, err);
}
