/* What `%coppice ...` in a cell asks of the gateway: about the kernel's own history alone, one
 * question at a time. It is answered, and carried out, while the cell runs, once what ran before it
 * is recorded. Loop thread. */
#ifndef COPPICE_SPINE_MAGIC_H
#define COPPICE_SPINE_MAGIC_H

#include <stdint.h>

struct desk;

/* kernel_watcher.on_ask. Texts of a guest: `log`, `show` NODE, `forget` NODE, `status`, `use` NAME,
 * `checkout` NODE, `undo`, `release`; what is none of these is answered so. checkout and undo are
 * carried out once the cell has ended (moves.h). */
void magic_ask(void *desk, int64_t id, const char *what, const char *about);
/* Something was recorded. */
void magic_recorded(struct desk *d);
/* The desk goes: nobody is answered any more. */
void magic_drop(struct desk *d);

#endif
