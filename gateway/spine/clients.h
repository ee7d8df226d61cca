/* Inside of the spine: client.c's side for the desk, which owns its clients. Loop thread. */
#ifndef COPPICE_SPINE_CLIENTS_H
#define COPPICE_SPINE_CLIENTS_H

#include <stddef.h>
#include <stdint.h>

struct cJSON;
struct desk;
struct live_client;

/* A client that an earlier gateway had; last is the last number of the journal's file. */
void client_restore(struct desk *d, struct live_client *row, uint64_t last);
void clients_tell(struct desk *d, uint64_t to);
void clients_close(struct desk *d, uint64_t to, unsigned code, const char *reason);
size_t clients_attached(const struct desk *d);
/* Attached ones count as old until they come with a new socket. True: there are several. */
bool clients_mark_old(struct desk *d);
/* An old one, which is no longer old then; JOURNAL_TO_NOBODY when there is none left. */
uint64_t clients_take_old(struct desk *d);
/* Number of the client of that session_id; JOURNAL_TO_NOBODY if there is none. */
uint64_t clients_by_session(const struct desk *d, const char *session_id);
void clients_drop_gone(struct desk *d, unsigned keep);
/* Adds a row for each client, for /admin/show/clients. */
void clients_show(const struct desk *d, struct cJSON *rows);

#endif
