#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/cli_finding.h"

/* A socket's path has 107 bytes; below the run folder stand "/12345678/s/control-12345". */
#define SOCKET_PATH_MAX 107
#define SOCKET_REST	26

/* Descriptors that 250 kernels with their clients need, with room. */
#define DESCRIPTORS_GOOD 8192

/* Checks the folder, or what is there of the way to it: doctor makes nothing. */
static int check_writable(const char *path)
{
	char at[PATH_MAX];
	if (!copy_text(at, sizeof at, path, strlen(path)))
		return ENAMETOOLONG;
	while (access(at, F_OK) != 0) {
		char *slash = strrchr(at, '/');
		if (!slash || errno != ENOENT)
			return errno;
		*(slash == at ? slash + 1 : slash) = '\0';
	}
	return access(at, W_OK | X_OK) == 0 ? 0 : errno;
}

static void check_folder(
	struct findings *f, const char *topic, const char *path, const char *option)
{
	char next[128];
	int fault = check_writable(path);
	(void)snprintf(next, sizeof next, "choose another with %s, or change its owner",
		option); /* fits */
	if (fault != 0)
		finding(f, GRADE_FAIL, topic, next, "%s cannot be written: %s", path,
			strerror(fault));
	else
		finding(f, GRADE_OK, topic, "", "%s can be written", path);
}

static void check_run_dir(struct findings *f, const struct config *config)
{
	size_t len = strlen(config->run_dir);
	if (len + SOCKET_REST > SOCKET_PATH_MAX)
		finding(f, GRADE_FAIL, "run folder", "choose a shorter one with --run-dir",
			"%s has %zu bytes; %d are allowed, since a socket's path has %d",
			config->run_dir, len, SOCKET_PATH_MAX - SOCKET_REST, SOCKET_PATH_MAX);
	else
		check_folder(f, "run folder", config->run_dir, "--run-dir");
}

static void check_token_file(struct findings *f, const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0 && errno == ENOENT)
		finding(f, GRADE_OK, "tokens", "", "%s is made at the first start", path);
	else if (stat(path, &st) != 0)
		finding(f, GRADE_FAIL, "tokens", "", "%s: %s", path, strerror(errno));
	else if (st.st_mode & 077)
		finding(f, GRADE_FAIL, "tokens", "run chmod 600 on it",
			"%s may be read or written by others (mode %04o)", path,
			(unsigned)(st.st_mode & 07777));
	else
		finding(f, GRADE_OK, "tokens", "", "%s is yours alone", path);
}

static void check_descriptors(struct findings *f)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < DESCRIPTORS_GOOD)
		finding(f, GRADE_WARN, "limits", "raise the hard limit (ulimit -Hn, LimitNOFILE)",
			"%llu descriptors at most; some 250 kernels need %d",
			(unsigned long long)limit.rlim_max, DESCRIPTORS_GOOD);
}

void doctor_host(struct findings *f, const struct config *config)
{
	check_folder(f, "data", config->data_dir, "--data-dir");
	check_run_dir(f, config);
	check_token_file(f, config->token_file);
	check_descriptors(f);
}
