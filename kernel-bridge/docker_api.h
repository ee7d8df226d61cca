/* Calls of the Docker Engine HTTP API over its unix socket. The version is negotiated before the
 * first call and again after the engine was away; calls wait for it. Owns what is in flight. Loop
 * thread. */
#ifndef COPPICE_BRIDGE_DOCKER_API_H
#define COPPICE_BRIDGE_DOCKER_API_H

#include "gateway/base/base.h"
#include "gateway/base/err.h"

struct uv_loop_s;
struct cJSON;
struct log;
struct docker_api;

#define DOCKER_CALL_MS	60000
#define DOCKER_PATH_MAX 1024

struct docker_call {
	const char *method;
	const char *path; /* "/containers/create?name=x", without version; borrowed for the call */
	const struct cJSON *body; /* or NULL; borrowed for the call */
	uint64_t timeout_ms;	  /* 0: DOCKER_CALL_MS */
	/* From the loop, never inside docker_api_send. err NULL: the engine did it, json is its
	 * answer (NULL if it has none). Else status is the engine's (404, 409 ...) or 0 if it does
	 * not answer: E_ENGINE with its words, E_ENGINE_DOWN, E_TIMEOUT. Borrowed. */
	void (*done)(void *data, int status, const struct cJSON *json, const struct err *err);
	void *data;
};

/* What the engine says of itself; texts are "" until it has answered. */
struct docker_version {
	char api[16]; /* the one that is spoken: "1.41" */
	char engine[64];
};

/* on_version: each time the engine was asked for its version and gave it. */
int docker_api_open(struct uv_loop_s *loop, const char *socket, const struct log *log,
	void (*on_version)(void *data), void *data, struct docker_api **ret, struct err *err);
/* Calls in flight are dropped without done. */
void docker_api_close(struct docker_api *a, void (*closed)(void *data), void *data);

int docker_api_send(struct docker_api *a, const struct docker_call *call, struct err *err);
/* Drops all calls with that data: their done never fires. The engine may still carry them out. */
void docker_api_cancel(struct docker_api *a, const void *data);

const struct docker_version *docker_api_version(const struct docker_api *a);
/* Why the engine is away, or NULL. */
const struct err *docker_api_away(const struct docker_api *a);

#endif
