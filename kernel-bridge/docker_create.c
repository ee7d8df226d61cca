#include "kernel-bridge/docker_create.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define GUEST_USER "1000:1000"
#define GUEST_HOME "/home/coppice"
#define MOUNT_MAX  4096
#define NOFILE	   4096 /* the kernel's own default: an engine may not be allowed to give more */

#define KILLED_FIRST 500 /* the host's OOM killer takes kernels before its own */

/* Lies in the binary as the file is: `make` runs at the top of the tree. */
__asm__(".pushsection .rodata\n"
	".global docker_seccomp\n"
	".hidden docker_seccomp\n"
	"docker_seccomp:\n"
	".incbin \"images/kernel/seccomp.json\"\n"
	".byte 0\n"
	".popsection\n");

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

/* An object of texts out of pairs, ended by NULL. cJSON frees it with what it is added to; what
 * cannot be made shows as NULL in the whole, see docker_create_body. */
static cJSON *texts(const char *const *pairs)
{
	cJSON *o = cJSON_CreateObject();
	for (size_t i = 0; o && pairs[i]; i += 2) {
		if (!cJSON_AddStringToObject(o, pairs[i], pairs[i + 1])) {
			cJSON_Delete(o);
			return NULL;
		}
	}
	return o;
}

static bool add(cJSON *to, const char *name, cJSON *item)
{
	if (item && cJSON_AddItemToObject(to, name, item))
		return true;
	cJSON_Delete(item);
	return false;
}

static bool push(cJSON *to, cJSON *item)
{
	if (item && cJSON_AddItemToArray(to, item))
		return true;
	cJSON_Delete(item);
	return false;
}

static bool add_text(cJSON *to, const char *name, const char *text)
{
	return cJSON_AddStringToObject(to, name, text) != NULL;
}

/* Sizes are below 2^53 by the option's bounds: a double holds them. */
static bool add_number(cJSON *to, const char *name, double n)
{
	return cJSON_AddNumberToObject(to, name, n) != NULL;
}

struct mount {
	char name[128];
	char path[MOUNT_MAX];
};

static bool is_mount_name(const char *name)
{
	size_t len = strlen(name);
	return len > 0 && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       len;
}

static int parse_mount(const char *item, struct mount *ret, struct err *err)
{
	const char *equals = strchr(item, '=');
	size_t len = strlen(item);
	if (!equals || len < 3 || strcmp(item + len - 3, ":ro") != 0)
		return err_set(err, E_INVALID, "--mount %s: not of the form NAME=PATH:ro", item);
	size_t path_len = (size_t)(item + len - 3 - (equals + 1));
	if (!copy_text(ret->name, sizeof(ret->name), item, (size_t)(equals - item)) ||
		!is_mount_name(ret->name))
		return err_set(err, E_INVALID,
			"--mount %s: the name holds letters, digits, '.', '_' and '-' only", item);
	if (equals[1] != '/' || !copy_text(ret->path, sizeof(ret->path), equals + 1, path_len))
		return err_set(err, E_INVALID, "--mount %s: the path is not absolute", item);
	return 0;
}

/* Only what is certainly not there: the engine may reach folders that we may not look at. */
static int find_mounted(const struct mount *m, struct err *err)
{
	struct stat st;
	if (stat(m->path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR))
		return 0;
	return err_set(err, E_INVALID,
		"--mount %s=%s:ro: there is no folder %s: make it, or name another", m->name,
		m->path, m->path);
}

int docker_mounts_check(const struct config *config, struct err *err)
{
	char item[MOUNT_MAX];
	struct mount m;
	AUTO(delete_tree) cJSON *seen = cJSON_CreateObject();
	for (const char *at = config->mount; config_list_next(&at, item, sizeof(item));) {
		int rc = parse_mount(item, &m, err);
		if (rc < 0)
			return rc;
		if (cJSON_GetObjectItemCaseSensitive(seen, m.name))
			return err_set(err, E_INVALID, "--mount: the name %s comes twice", m.name);
		if (!cJSON_AddTrueToObject(seen, m.name))
			return err_set(err, E_NOMEM, "--mount: out of memory");
		rc = find_mounted(&m, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Not recursive: read-only would hold for the outermost file system only. */
static bool push_bind(cJSON *mounts, const char *source, const char *target)
{
	cJSON *m = texts(
		(const char *const[]){"Type", "bind", "Source", source, "Target", target, NULL});
	cJSON *options = cJSON_CreateObject();
	bool ok = m && options && cJSON_AddTrueToObject(m, "ReadOnly") &&
		  add_text(options, "Propagation", "rprivate") &&
		  cJSON_AddTrueToObject(options, "NonRecursive");
	if (!ok) {
		cJSON_Delete(options);
		cJSON_Delete(m);
		return false;
	}
	return add(m, "BindOptions", options) ? push(mounts, m) : (cJSON_Delete(m), false);
}

/* The small tmpfs in which a kernel without coppice_kernel binds its sockets. It has no name: it
 * goes with its container. */
static bool push_volume(cJSON *mounts)
{
	cJSON *m = cJSON_Parse("{\"Type\":\"volume\",\"Target\":\"" DOCKER_FOREIGN "\","
			       "\"VolumeOptions\":{\"NoCopy\":true,\"DriverConfig\":{"
			       "\"Name\":\"local\",\"Options\":{\"type\":\"tmpfs\","
			       "\"device\":\"tmpfs\",\"o\":\"size=1m,nr_inodes=64,uid=1000,"
			       "gid=1000,mode=0700,nosuid,nodev,noexec\"}}}}");
	return push(mounts, m);
}

static int add_mounts(const struct docker_create *c, cJSON *host, struct err *err)
{
	cJSON *mounts = cJSON_AddArrayToObject(host, "Mounts");
	char item[MOUNT_MAX], target[sizeof(((struct mount *)0)->name) + sizeof("/data/")];
	struct mount m;
	bool ok = mounts && push_bind(mounts, c->sockets, DOCKER_SOCKETS);
	for (const char *at = c->config->mount; ok && config_list_next(&at, item, sizeof(item));) {
		int rc = parse_mount(item, &m, err);
		if (rc < 0)
			return rc;
		(void)snprintf(target, sizeof(target), "/data/%s", m.name); /* sized for it */
		ok = push_bind(mounts, m.path, target);
	}
	if (ok && c->argv)
		ok = push_volume(mounts);
	return ok ? 0 : err_set(err, E_NOMEM, "create call: out of memory");
}

/* A kernel without coppice_kernel has no branches. */
static int64_t branches_size(const struct docker_create *c)
{
	return c->argv ? 0 : c->config->branches_size;
}

/* Tmpfs rather than a mount of that type: only here the engine takes inodes and owner. */
static bool add_tmpfs(const struct docker_create *c, cJSON *host)
{
	const struct config *config = c->config;
	char work[128], branches[128], tmp[128], home[128], shm[128];
	int64_t inodes = config->work_inodes;
	/* Numbers only: they fit. */
	(void)snprintf(work, sizeof(work),
		"rw,exec,nosuid,nodev,size=%" PRId64 ",nr_inodes=%" PRId64
		",uid=1000,gid=1000,mode=0700",
		config->work_size, inodes);
	(void)snprintf(branches, sizeof(branches),
		"rw,exec,nosuid,nodev,size=%" PRId64 ",nr_inodes=%" PRId64
		",uid=1000,gid=1000,mode=0700",
		config->branches_size, inodes);
	(void)snprintf(tmp, sizeof(tmp),
		"rw,exec,nosuid,nodev,size=%" PRId64 ",nr_inodes=%" PRId64 ",mode=1777",
		config->tmp_size, inodes);
	(void)snprintf(home, sizeof(home),
		"rw,exec,nosuid,nodev,size=%" PRId64 ",nr_inodes=%" PRId64
		",uid=1000,gid=1000,mode=0700",
		config->tmp_size, inodes);
	/* In place of the engine's own, which takes a size (ShmSize) but no inodes. */
	(void)snprintf(shm, sizeof(shm),
		"rw,noexec,nosuid,nodev,size=%" PRId64 ",nr_inodes=%" PRId64 ",mode=1777",
		config->tmp_size, inodes);
	return add(host, "Tmpfs",
		texts((const char *const[]){DOCKER_WORK, work, "/tmp", tmp, GUEST_HOME, home,
			"/dev/shm", shm, branches_size(c) > 0 ? DOCKER_BRANCHES : NULL, branches,
			NULL}));
}

static bool add_limits(const struct docker_create *c, cJSON *host)
{
	const struct config *config = c->config;
	/* Files in /work and /branches lie in memory and are counted there. No swap: memory is the
	 * limit. */
	double memory = (double)(config->memory + config->work_size + branches_size(c));
	cJSON *ulimits = cJSON_CreateArray();
	cJSON *core = cJSON_Parse("{\"Name\":\"core\",\"Soft\":0,\"Hard\":0}");
	cJSON *files = cJSON_Parse("{\"Name\":\"nofile\"}");
	bool ok = ulimits && files && add_number(files, "Soft", NOFILE) &&
		  add_number(files, "Hard", NOFILE);
	ok = push(ulimits, core) && ok;
	ok = push(ulimits, files) && ok;
	return add(host, "Ulimits", ulimits) && ok && add_number(host, "Memory", memory) &&
	       add_number(host, "MemorySwap", memory) &&
	       add_number(host, "PidsLimit", (double)config->pids) &&
	       add_number(host, "OomScoreAdj", KILLED_FIRST);
}

/* A guest can write to what its init writes to, so the engine's log of it is bounded. */
static bool add_wall(cJSON *host)
{
	size_t size = strlen(docker_seccomp) + sizeof("seccomp=");
	AUTO(freep) char *profile = malloc(size);
	if (!profile)
		return false;
	(void)snprintf(profile, size, "seccomp=%s", docker_seccomp); /* sized for it */
	cJSON *security = cJSON_CreateArray();
	bool ok = push(security, cJSON_CreateString("no-new-privileges"));
	ok = push(security, cJSON_CreateString(profile)) && ok;
	return add(host, "SecurityOpt", security) && ok && add_text(host, "NetworkMode", "none") &&
	       add_text(host, "IpcMode", "private") &&
	       cJSON_AddTrueToObject(host, "ReadonlyRootfs") &&
	       cJSON_AddFalseToObject(host, "Privileged") && cJSON_AddFalseToObject(host, "Init") &&
	       add(host, "CapDrop", cJSON_Parse("[\"ALL\"]")) &&
	       add(host, "LogConfig",
		       cJSON_Parse("{\"Type\":\"json-file\",\"Config\":{\"max-size\":\"1m\","
				   "\"max-file\":\"1\"}}"));
}

static bool add_env(cJSON *body, const cJSON *env)
{
	cJSON *list = cJSON_AddArrayToObject(body, "Env");
	const cJSON *item;
	bool ok = list != NULL;
	cJSON_ArrayForEach (item, env) {
		size_t size = strlen(item->string) + strlen(item->valuestring) + 2;
		AUTO(freep) char *text = malloc(size);
		if (text)
			(void)snprintf(text, size, "%s=%s", item->string, item->valuestring);
		ok = ok && text && push(list, cJSON_CreateString(text));
	}
	return ok;
}

static bool add_command(const struct docker_create *c, cJSON *body)
{
	if (!c->argv)
		return true;
	return add(body, "Entrypoint", cJSON_Parse("[]")) &&
	       add(body, "Cmd", cJSON_Duplicate(c->argv, true)) && add_env(body, c->env);
}

static bool add_outside(const struct docker_create *c, cJSON *body)
{
	return add_text(body, "Image", c->image) && add_text(body, "User", GUEST_USER) &&
	       add_text(body, "WorkingDir", DOCKER_WORK) && add_text(body, "Hostname", "coppice") &&
	       cJSON_AddTrueToObject(body, "NetworkDisabled") &&
	       cJSON_AddFalseToObject(body, "OpenStdin") && cJSON_AddFalseToObject(body, "Tty") &&
	       add_number(body, "StopTimeout", 1) &&
	       add(body, "Labels",
		       texts((const char *const[]){
			       DOCKER_LABEL_RUN, c->run, DOCKER_LABEL_SLOT, c->slot, NULL})) &&
	       add_command(c, body);
}

int docker_create_body(const struct docker_create *c, struct cJSON **ret, struct err *err)
{
	AUTO(delete_tree) cJSON *body = cJSON_CreateObject();
	cJSON *host = cJSON_AddObjectToObject(body, "HostConfig");
	if (!host || !add_outside(c, body) || !add_wall(host) || !add_limits(c, host) ||
		!add_tmpfs(c, host))
		return err_set(err, E_NOMEM, "create call: out of memory");
	int rc = add_mounts(c, host, err);
	if (rc < 0)
		return rc;
	*ret = TAKE(body);
	return 0;
}

struct cJSON *docker_update_body(const struct config *config)
{
	cJSON *body = cJSON_CreateObject();
	/* Out of memory leaves it empty, which the engine takes as no change. */
	(void)cJSON_AddNumberToObject(body, "NanoCpus", (double)(int64_t)(config->cpus * 1e9));
	return body;
}
