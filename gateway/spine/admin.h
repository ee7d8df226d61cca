/* What the gateway can be asked: rows for /admin/show/..., figures for /metrics. Read only. */
#ifndef COPPICE_SPINE_ADMIN_H
#define COPPICE_SPINE_ADMIN_H

#include "gateway/gateway.h"

struct cJSON;
struct buf;

/* what: kernels, executions, clients, slots, sessions, engine, config, counters. NULL if there is
 * no such view. Array of row objects (or an object for engine, config, counters); caller owns. */
struct cJSON *admin_show(const struct gateway *gw, const char *what);
/* Prometheus text format. */
void admin_metrics(const struct gateway *gw, struct buf *ret);

#endif
