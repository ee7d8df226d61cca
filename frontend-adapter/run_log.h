/* The whole of what a run printed, both streams in order, as a file: written behind, a block at a
 * time. Owns its file until it is closed; loop thread. */
#ifndef COPPICE_ADAPTER_RUN_LOG_H
#define COPPICE_ADAPTER_RUN_LOG_H

#include "gateway/base/base.h"
#include "gateway/base/log.h"

struct uv_loop_s;
struct run_log;

#define RUN_LOG_MAX (256u << 20)

/* The file is made with the first text. */
struct run_log *run_log_new(struct uv_loop_s *loop, const struct log *log, const char *path);
/* Beyond RUN_LOG_MAX, or once the disk failed, nothing is added; a last line says so. */
void run_log_add(struct run_log *l, struct bytes text);
/* Nothing more is added. False: all of it is in the file, or why not is known. True: cb from the
 * loop, once, when that is so. */
bool run_log_finish(struct run_log *l, void (*cb)(void *data), void *data);
/* Why not all of it is in the file; NULL: it is, or that is not known yet. */
const char *run_log_trouble(const struct run_log *l);
/* The disk lags: it is better to wait before more comes. */
bool run_log_lags(const struct run_log *l);
/* What was added is still written; l is not to be used any more. NULL does nothing. */
void run_log_close(struct run_log *l);

#endif
