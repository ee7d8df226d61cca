#include "gateway/spine/scribe_source.h"

#include <string.h>

#include "gateway/base/buf.h"
#include "gateway/base/jmsg.h"

struct reader {
	struct journal_scan *scan;
	uint64_t last;
	char *more;
	struct jmsg *made; /* the last entry, with that */
};

/* The facts are ours: an object with members, on one line. */
static int add_more(struct reader *r, struct bytes frame, struct err *err)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	AUTO(buf_done) struct buf content;
	int rc = jmsg_from_frame(frame, &m, err);
	if (rc != 0)
		return rc;
	struct jmsg_source source = {.channel = m->channel};
	memcpy(source.part, m->part, sizeof source.part);
	buf_init(&content, JMSG_FRAME_MAX);
	(void)buf_add(&content, m->part[PART_CONTENT].data, m->part[PART_CONTENT].len - 1);
	(void)buf_add_text(&content, r->more); /* latched */
	(void)buf_add_text(&content, "}");
	rc = buf_check(&content, "facts", err);
	source.part[PART_CONTENT] = (struct bytes){content.data, content.len};
	return rc == 0 ? jmsg_new(&source, false, &r->made, err) : rc;
}

static int next(void *data, struct bytes *ret_frame, struct err *err)
{
	struct reader *r = data;
	struct scanned found;
	int rc = journal_scan_next(r->scan, &found, err);
	if (rc != 1)
		return rc;
	*ret_frame = found.frame;
	if (found.number < r->last || !*r->more)
		return 1;
	rc = add_more(r, found.frame, err);
	if (rc != 0)
		return rc;
	*ret_frame = r->made->frame;
	return 1;
}

static void close(void *data)
{
	struct reader *r = data;
	journal_scan_free(r->scan);
	jmsg_unref(r->made);
	free(r->more);
	free(r);
}

struct history_source scribe_source(const struct journal_stretch *stretch, const char *more)
{
	struct reader *r = xcalloc(1, sizeof *r);
	r->scan = journal_scan_new(stretch);
	r->last = stretch->last;
	r->more = xstrdup(more);
	return (struct history_source){.next = next, .close = close, .data = r};
}
