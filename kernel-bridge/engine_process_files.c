/* The files of a line: connection file, record of its process, log. */
#include "kernel-bridge/engine_process.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/json_tree.h"

#define TAIL_MAX 4096

void process_file_path(
	char ret_path[PROCESS_PATH_SIZE], const char *dir, const char *stem, const char *kind)
{
	/* engine_process_open and process_line_start bound both texts. */
	(void)snprintf(ret_path, PROCESS_PATH_SIZE, "%.100s/%.120s.%s", dir, stem, kind);
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Nobody ever sees half a file: it is written under another name, then renamed. */
static int write_file(const char *path, const char *text, struct err *err)
{
	char part[PROCESS_PATH_SIZE + 8];
	int fd, rc;

	(void)snprintf(part, sizeof(part), "%s.part", path); /* fits */
	(void)unlink(part);				     /* usually there is none */
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(err, E_IO, "%s: %s", part, strerror(errno));
	rc = write_all(fd, text, strlen(text));
	if (close(fd) < 0 || rc < 0 || rename(part, path) < 0) {
		int code = errno;

		(void)unlink(part); /* best effort */
		return err_set(err, E_IO, "%s: %s", path, strerror(code));
	}
	return 0;
}

static cJSON *connection(const struct endpoints *endpoints, const struct process_ports *ports,
	const char *kernel_name)
{
	cJSON *tree = cJSON_CreateObject();

	for (int c = 0; c < CHANNEL_COUNT; c++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%s_port", channel_name((enum channel)c));
		cJSON_AddNumberToObject(tree, name, ports->port[c]);
	}
	cJSON_AddStringToObject(tree, "ip", "127.0.0.1");
	cJSON_AddStringToObject(tree, "transport", "tcp");
	cJSON_AddStringToObject(tree, "key", endpoints->key);
	cJSON_AddStringToObject(tree, "signature_scheme", "hmac-sha256");
	cJSON_AddStringToObject(tree, "kernel_name", kernel_name);
	if (endpoints->curve_public[0]) {
		cJSON_AddStringToObject(tree, "curve_publickey", endpoints->curve_public);
		cJSON_AddStringToObject(tree, "curve_secretkey", endpoints->curve_secret);
	}
	return tree;
}

int process_write_connection(const char *path, const struct endpoints *endpoints,
	const struct process_ports *ports, const char *kernel_name, struct err *err)
{
	cJSON *tree = connection(endpoints, ports, kernel_name);
	char *text = json_print(tree, err);
	int rc = text ? write_file(path, text, err) : err_wrap(err, "connection file");

	cJSON_Delete(tree);
	free(text);
	return rc;
}

int process_write_pid(const char *path, struct process_id id, const char *mark, struct err *err)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "%d %llu %.120s\n", (int)id.pid, id.started, mark);
	return write_file(path, text, err);
}

int process_open_log(const char *path, struct err *err)
{
	int fd;

	(void)unlink(path); /* usually there is none */
	/* O_APPEND: after trimming, the kernel goes on at the new end. */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd >= 0 ? fd : err_set(err, E_IO, "%s: %s", path, strerror(errno));
}

int64_t process_log_size(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : 0;
}

static size_t read_end(const char *path, int64_t skip, char to[TAIL_MAX + 1])
{
	int64_t size = process_log_size(path), from = size > TAIL_MAX ? size - TAIL_MAX : 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = -1;

	/* A log that is shorter than that was trimmed since. */
	if (from < skip && skip <= size)
		from = skip;
	if (fd >= 0) {
		n = pread(fd, to, TAIL_MAX, from);
		(void)close(fd); /* only read from */
	}
	to[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

void process_log_tail(const char *path, int64_t skip, char *ret_text, size_t size)
{
	char text[TAIL_MAX + 1];
	size_t end = read_end(path, skip, text), begin, out = 0;

	while (end > 0 && (unsigned char)text[end - 1] <= ' ')
		end--;
	for (begin = end; begin > 0 && text[begin - 1] != '\n';)
		begin--;
	while (begin < end && (unsigned char)text[begin] <= ' ')
		begin++;
	for (size_t i = begin; i < end && out + 1 < size; i++)
		ret_text[out++] = (text[i] >= ' ' && text[i] <= '~') ? text[i] : '?';
	ret_text[out] = '\0';
}

bool process_log_in_use(const char *path)
{
	char text[TAIL_MAX + 1];

	for (size_t len = read_end(path, 0, text), at = 0; at < len; at += strlen(text + at) + 1)
		if (strcasestr(text + at, "address already in use") ||
			strstr(text + at, "EADDRINUSE"))
			return true;
	return false;
}

void process_remove_files(const char *dir, const char *stem)
{
	static const char *const kinds[] = {"json", "pid", "log"};
	char path[PROCESS_PATH_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		process_file_path(path, dir, stem, kinds[i]);
		(void)unlink(path); /* the sweep of the next start takes what is left */
	}
}

/* The record counts only while the pid is still that process. */
static void kill_recorded(int dir_fd, const char *name, const struct log *log)
{
	char text[256], mark[128];
	unsigned long long started = 0;
	int pid = 0;
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		(void)close(fd); /* only read from */
	text[n > 0 ? n : 0] = '\0';
	if (sscanf(text, "%d %llu %127s", &pid, &started, mark) != 3 || pid <= 1 || started == 0)
		return;
	if (process_id_of(pid).started != started)
		return;
	log_info(log, "process_swept pid=%d line=%s", pid, mark);
	(void)process_tree_kill(pid, true, mark); /* the count interests nobody here */
}

void process_sweep_files(const char *dir, const struct log *log)
{
	DIR *d = opendir(dir);

	if (!d)
		return;
	for (const struct dirent *e; (e = readdir(d));) {
		size_t len = strlen(e->d_name);

		if (e->d_name[0] == '.')
			continue;
		if (len > 4 && strcmp(e->d_name + len - 4, ".pid") == 0)
			kill_recorded(dirfd(d), e->d_name, log);
		(void)unlinkat(dirfd(d), e->d_name, 0); /* a folder is none of ours */
	}
	(void)closedir(d); /* only read from */
}
