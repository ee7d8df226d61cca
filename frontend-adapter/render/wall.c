/* The wall: limits from the start, and a filter of system calls before a hostile byte is looked at.
 * Behind it there is memory, arithmetic, and the three descriptors: no file, no network, no other
 * program or process (threads there are), no executable page. What is asked of a file answers
 * EACCES, since libraries ask at odd moments; what has no place here at all ends the process. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "frontend-adapter/render/render.h"

#define MEMORY_MAX  (1536u << 20)
#define SECONDS_MAX 8
#define FILES_MAX   64

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif

_Static_assert(ARCH != 0, "the filter must know this architecture");

/* AddressSanitizer maps terabytes of shadow, and reports through calls of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static const int allowed[] = {SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_close, SYS_brk,
	SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex, SYS_rt_sigreturn, SYS_rt_sigprocmask,
	SYS_rt_sigaction, SYS_sigaltstack, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday,
	SYS_times, SYS_getrusage, SYS_clock_nanosleep, SYS_nanosleep, SYS_restart_syscall,
	SYS_sched_yield, SYS_sched_getaffinity, SYS_set_robust_list, SYS_rseq, SYS_getrandom,
	SYS_getpid, SYS_gettid, SYS_exit, SYS_exit_group};

/* Asked by libraries that can do without. */
static const int refused[] = {
	SYS_openat,
	SYS_newfstatat,
	SYS_fstat,
	SYS_statx,
	SYS_readlinkat,
	SYS_getcwd,
	SYS_getdents64,
	SYS_lseek,
	SYS_fcntl,
	SYS_ioctl,
	SYS_prctl,
	SYS_prlimit64,
	SYS_uname,
	SYS_sysinfo,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_statfs,
	SYS_fstatfs,
	SYS_pread64,
	SYS_tgkill,
	SYS_getpeername,
	SYS_membarrier,
#ifdef SYS_open
	SYS_open,
	SYS_stat,
	SYS_lstat,
	SYS_readlink,
#endif
};

/* cairo asks this of a face that is open already, at each new size: "yes" without a look. */
static const int feigned[] = {
	SYS_faccessat,
	SYS_faccessat2,
#ifdef SYS_access
	SYS_access,
#endif
};

static void limit(__rlimit_resource_t resource, rlim_t value)
{
	struct rlimit l = {value, value};
	(void)setrlimit(resource, &l); /* a lower one of whoever started us stays */
}

/* Before libraries begin. */
void wall_limits(void)
{
	(void)close_range(3, ~0U, 0); /* an older system: whoever started us left none open */
	limit(RLIMIT_CPU, SECONDS_MAX);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_NOFILE, FILES_MAX);
	if (!SANITIZED)
		limit(RLIMIT_AS, MEMORY_MAX);
}

#define CODE_MAX 256

_Static_assert(2 * (ARRAY_LEN(allowed) + ARRAY_LEN(refused) + ARRAY_LEN(feigned)) + 32 < CODE_MAX,
	"room for two instructions a call");

struct program {
	struct sock_filter code[CODE_MAX];
	unsigned short len;
};

static void add(struct program *p, struct sock_filter instruction)
{
	p->code[p->len++] = instruction;
}

static void answer(struct program *p, uint32_t what)
{
	add(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}

/* If the loaded word is `value`, the next instruction is done, else passed over. */
static void when(struct program *p, uint32_t value)
{
	add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
}

static void load(struct program *p, size_t offset)
{
	add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* mmap and mprotect, but nothing that can be run. The protection is the third argument. */
static void memory(struct program *p, uint32_t call)
{
	add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
	load(p, offsetof(struct seccomp_data, args[2]));
	add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1));
	answer(p, SECCOMP_RET_ERRNO | EACCES);
	answer(p, SECCOMP_RET_ALLOW);
}

/* Threads, which pango matches fonts in; no process. clone3's flags cannot be seen from here: the C
 * library takes clone where it is not there. The flags are the first argument. */
static void threads(struct program *p)
{
	when(p, SYS_clone3);
	answer(p, SECCOMP_RET_ERRNO | ENOSYS);
	add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
	load(p, offsetof(struct seccomp_data, args[0]));
	add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
	answer(p, SECCOMP_RET_ALLOW);
	answer(p, SECCOMP_RET_KILL_PROCESS);
}

static void all(struct program *p, const int *calls, size_t n, uint32_t what)
{
	for (size_t i = 0; i < n; i++) {
		when(p, (uint32_t)calls[i]);
		answer(p, what);
	}
}

static void compose(struct program *p)
{
	load(p, offsetof(struct seccomp_data, arch));
	add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
	answer(p, SECCOMP_RET_KILL_PROCESS);
	load(p, offsetof(struct seccomp_data, nr));
	memory(p, SYS_mmap);
	memory(p, SYS_mprotect);
	threads(p);
	all(p, allowed, ARRAY_LEN(allowed), SECCOMP_RET_ALLOW);
	all(p, refused, ARRAY_LEN(refused), SECCOMP_RET_ERRNO | EACCES);
	all(p, feigned, ARRAY_LEN(feigned), SECCOMP_RET_ERRNO); /* 0: "yes" */
	answer(p, SECCOMP_RET_KILL_PROCESS);
}

int wall_up(struct err *err)
{
	struct program p = {.len = 0};
	compose(&p);
	struct sock_fprog prog = {.len = p.len, .filter = p.code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return err_set(err, E_IO, "prctl: %s", strerror(errno));
	/* All threads at once: librsvg's filters may have some. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) != 0)
		return err_set(err, E_IO, "seccomp: %s", strerror(errno));
	return 0;
}
