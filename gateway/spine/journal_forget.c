#include "gateway/spine/journal_forget.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/spine/blank.h"
#include "gateway/spine/journal.h"
#include "gateway/spine/journal_file.h"

struct job {
	struct journal_wait wait;
	uv_work_t work;
	struct uv_loop_s *loop;
	char folder[PATH_MAX], msg_id[JMSG_ID_MAX];
	int status;
	struct err err;
	void (*cb)(void *data, const struct err *err);
	void *data;
};

/* ---- in a thread of the pool ---- */

static uint64_t get_le(const uint8_t *from, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)from[i] << (8 * i);
	return value;
}

static int write_over(int fd, const uint8_t *data, size_t len, off_t at, struct err *err)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, data, len, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(err, E_IO, "the journal cannot be written over: %s",
				strerror(errno));
		data += n;
		len -= (size_t)n;
		at += n;
	}
	return 0;
}

static int blank_record(int fd, struct bytes frame, off_t at, struct err *err)
{
	uint8_t *copy = malloc(frame.len);
	if (!copy)
		return err_set(err, E_NOMEM, "a record of %zu bytes: out of memory", frame.len);
	memcpy(copy, frame.data, frame.len);
	blank_frame(copy, frame.len);
	int status = write_over(fd, copy, frame.len, at, err);
	free(copy);
	return status;
}

/* What is being appended meanwhile ends before it is whole, or is not of that run. */
static int walk(int fd, struct bytes all, const char *msg_id, struct err *err)
{
	int status = 0;
	for (size_t at = 0; status == 0 && all.len - at >= RECORD_HEAD;) {
		size_t len = (size_t)get_le(all.data + at, 4);
		struct bytes frame = {all.data + at + RECORD_HEAD, len};
		if (len > all.len - at - RECORD_HEAD)
			break;
		if (blank_concerns(frame, msg_id))
			status = blank_record(fd, frame, (off_t)(at + RECORD_HEAD), err);
		at += RECORD_HEAD + len;
	}
	return status;
}

static int open_failed(const char *path, struct err *err)
{
	if (errno == ENOENT)
		return 0; /* it was cut */
	return err_set(err, E_IO, "journal: %s: %s", path, strerror(errno));
}

static int forget_segment(const char *path, const char *msg_id, struct err *err)
{
	struct stat st;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), status = 0;
	void *at = MAP_FAILED;
	if (fd < 0)
		return open_failed(path, err);
	if (fstat(fd, &st) != 0)
		status = err_set(err, E_IO, "journal: %s: %s", path, strerror(errno));
	else if (st.st_size > 0)
		at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (status == 0 && st.st_size > 0 && at == MAP_FAILED)
		status = err_set(err, E_NOMEM, "journal: %s: %s", path, strerror(errno));
	if (at != MAP_FAILED) {
		status = walk(fd, (struct bytes){at, (size_t)st.st_size}, msg_id, err);
		(void)munmap(at, (size_t)st.st_size); /* cannot fail for a mapping of ours */
	}
	if (status == 0 && fdatasync(fd) != 0)
		status = err_set(err, E_IO, "journal: %s: %s", path, strerror(errno));
	(void)close(fd); /* it was synced */
	return status;
}

static bool is_segment(const char *name)
{
	size_t len = strlen(name);
	return len > 4 && strcmp(name + len - 4, ".seg") == 0;
}

static void on_work(uv_work_t *work)
{
	struct job *job = CONTAINER_OF(work, struct job, work);
	char path[PATH_MAX + NAME_MAX + 1];
	DIR *dir = opendir(job->folder);
	for (struct dirent *d; dir && job->status == 0 && (d = readdir(dir));) {
		(void)snprintf(path, sizeof path, "%s/%s", job->folder, d->d_name); /* fits */
		if (is_segment(d->d_name))
			job->status = forget_segment(path, job->msg_id, &job->err);
	}
	if (dir)
		(void)closedir(dir); /* read only */
}

/* ---- in the loop ---- */

static void on_worked(uv_work_t *work, int uv_status)
{
	struct job *job = CONTAINER_OF(work, struct job, work);
	(void)uv_status; /* nobody cancels it */
	job->cb(job->data, job->status == 0 ? NULL : &job->err);
	free(job);
}

static void begin(void *data)
{
	struct job *job = data;
	int rc = uv_queue_work(job->loop, &job->work, on_work, on_worked);
	assert(rc == 0); /* it has a callback: nothing else can be wrong */
	(void)rc;	 /* only read by the assert */
}

static bool is_of(void *data, const struct jmsg *m)
{
	return strcmp(m->msg_id, data) == 0 || strcmp(m->parent_id, data) == 0;
}

void journal_forget(struct uv_loop_s *loop, struct journal *j, const char *folder,
	const char *msg_id, void (*cb)(void *data, const struct err *err), void *data)
{
	struct job *job = xcalloc(1, sizeof *job);
	job->loop = loop;
	job->cb = cb;
	job->data = data;
	/* Both were measured where they came from. */
	(void)copy_text(job->folder, sizeof job->folder, folder, strlen(folder));
	(void)copy_text(job->msg_id, sizeof job->msg_id, msg_id, strlen(msg_id));
	job->wait = (struct journal_wait){.cb = begin, .data = job};
	if (j)
		job->status = journal_replace(j, is_of, job->msg_id, blank_message, &job->err);
	if (!j || !journal_await(j, &job->wait))
		begin(job);
}
