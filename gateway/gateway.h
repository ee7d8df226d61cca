/* The gateway: what is passed down instead of globals. Made and ended by main.c. Loop thread. */
#ifndef COPPICE_GATEWAY_H
#define COPPICE_GATEWAY_H

#include <uv.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/log.h"
#include "kernel-bridge/bridge.h"

#define COPPICE_VERSION "0.1.0"

struct kernels;	  /* spine/kernels.h */
struct sessions;  /* spine/sessions.h */
struct owners;	  /* spine/owners.h */
struct door;	  /* door/listen.h */
struct histories; /* history/history.h */
struct renderer;  /* frontend-adapter/adapter.h */
struct chats;	  /* frontend-adapter/adapter.h */

struct gateway {
	uv_loop_t *loop;
	struct clock *clock;
	struct config config;
	struct log_sink log_sink;
	struct log log;
	struct bridge *bridge;
	struct owners *owners;
	struct kernels *kernels;
	struct sessions *sessions;
	struct door *door;
	struct histories *histories; /* NULL: nothing is recorded */
	struct renderer *renderer;
	struct chats *chats;
	bool ending;
	int64_t started_us; /* wall */
};

#endif
