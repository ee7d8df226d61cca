/* An error is a value that the caller lends: a code and a sentence, no allocation.
 * It is set once at the cause, wrapped with context on the way up, logged once by whoever stops
 * passing it on. Any thread; nothing is shared. */
#ifndef COPPICE_BASE_ERR_H
#define COPPICE_BASE_ERR_H

/* One row per code in err.c gives name, HTTP status and Jupyter ename. */
enum err_code {
	E_NONE = 0,
	E_NOMEM = -1,	       /* 500 */
	E_INVALID = -2,	       /* 400: what was sent is malformed */
	E_UNAUTHORIZED = -3,   /* 401: no token, or not one of ours */
	E_FORBIDDEN = -4,      /* 403: scope or origin missing */
	E_NOT_FOUND = -5,      /* 404 */
	E_CONFLICT = -6,       /* 409 */
	E_GONE = -7,	       /* 410 */
	E_TOO_BIG = -8,	       /* 413 */
	E_NO_SPEC = -9,	       /* 501: Jupyter's answer to an unknown kernelspec in sessions */
	E_UNAVAILABLE = -10,   /* 503: not ready, ending, a peer is away */
	E_TIMEOUT = -11,       /* 504 */
	E_IO = -12,	       /* 500: a system call failed */
	E_ENGINE = -13,	       /* 502: the container engine refused or failed */
	E_PROTOCOL = -14,      /* 502: a peer (kernel, supervisor, engine) broke its protocol */
	E_METHOD = -15,	       /* 405 */
	E_DEAD = -16,	       /* 503: the kernel is dead */
	E_BUSY = -17,	       /* 409: something is under way there */
	E_AMBIGUOUS = -18,     /* 409: a name of several things */
	E_CAPACITY = -19,      /* 503: a limit of ours is reached */
	E_QUEUE_TIMEOUT = -20, /* 503: waited for a place in vain */
	E_ENGINE_DOWN = -21,   /* 503: the container engine does not answer */
	E_STALE = -22,	       /* 409: what the caller knows is not how it is any more */
	E_PARTIAL = -23,       /* 409: less is to be had than was asked for */
};

struct err {
	int code;
	char text[512];
};

/* Sets code and sentence; returns code. A NULL err is allowed. Text is cut, never overrun. */
int err_set(struct err *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Puts "context: " before the sentence; returns the code that is there. */
int err_wrap(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *err_name(int code);	 /* "not_found" */
int err_http_status(int code);	 /* 404 */
const char *err_ename(int code); /* "NotFound", for Jupyter error content */

#endif
