/* One client's WebSocket, whatever carries it: takes messages in, pulls entries out of the spine
 * when there is room, keeps count of what the peer has. Owns its client of the spine. Loop thread.
 */
#ifndef COPPICE_DOOR_SOCKET_H
#define COPPICE_DOOR_SOCKET_H

#include "gateway/door/decode.h"
#include "gateway/door/delivery.h"
#include "gateway/door/door.h"
#include "gateway/spine/client.h"

/* What carries it: listen_ws.c, or a fake one in tests. */
struct carrier {
	/* Takes all of it (what the socket buffer has no room for is copied), or < 0: it is broken.
	 * data has OUTBOX_HEADROOM writable bytes before it. out may be NULL, else the system notes
	 * there how much of it went, if it can. */
	int (*write)(void *wire, uint8_t *data, size_t len, struct mmsghdr *out);
	/* Part of the last write still waits. socket_writable() is called when it went. */
	bool (*busy)(void *wire);
	/* socket_writable() will be called from the loop. */
	void (*want_writable)(void *wire);
	/* Sends a close frame and waits for its answer for a while; never called from within lws.
	 */
	void (*close)(void *wire, unsigned code, const char *reason);
	/* Cut off without a close frame; socket_free() follows from the loop. */
	void (*cut)(void *wire);
	/* Stream positions as TCP knows them: bytes acknowledged since the connection began, and
	 * bytes written but not acknowledged. False if they cannot be had. */
	bool (*positions)(void *wire, uint64_t *ret_acked, uint64_t *ret_unacked);
};

/* Clients whose limits we know. */
enum client_trait {
	TRAIT_NO_BINARY = 1, /* jupyter_server's --gateway-url: a binary frame ends its reading */
	TRAIT_CAPPED = 2,    /* Tornado's client: resets the connection above 10 MiB a message */
};
#define CAPPED_MAX (10u << 20)

struct head; /* head.h */

struct socket_setup {
	struct desk *desk;
	const char *session_id; /* or NULL */
	enum framing framing;
	unsigned traits;
	const struct carrier *carrier;
	void *wire;
};

struct socket {
	struct list link, ready;
	struct door *door;
	struct log log;
	const struct carrier *carrier;
	void *wire;
	struct client *client; /* NULL: none yet, or let go of */
	enum framing framing;
	unsigned traits;
	uint64_t who; /* hash of kernel and session: see door.told */
	/* in */
	struct buf in;
	struct head *dropped; /* of a message over the limit, while it goes by */
	/* out */
	struct list notices; /* our own messages, before the journal's */
	unsigned n_notices;
	struct entry *entry;  /* on its way out */
	struct bytes payload; /* of entry, or of text */
	struct buf text;
	bool binary;
	size_t at;
	char *session; /* header.session that the kernel used last */
	struct delivery sent;
	uint64_t base; /* what TCP's count is ahead of sent.total; with based */
	bool based;
	/* end */
	struct timer ping, patience;
	unsigned unanswered;
	uint64_t acked; /* at the last ping: where TCP stood */
	bool ping_due, mute, peer_closed;
	unsigned close_code; /* 0: open */
	char *close_reason;
	uint64_t unacked_max;
};

/* Attaches to the desk. */
int socket_open(
	struct door *d, const struct socket_setup *setup, struct socket **ret, struct err *err);
/* The carrier is gone (or about to be): what the peer did not have goes back to the spine. */
void socket_free(struct socket *s);

/* One piece of a message. first, final: of the whole message, not of a fragment. */
struct piece {
	struct bytes data;
	bool binary, first, final;
};
void socket_receive(struct socket *s, const struct piece *piece);
void socket_heard(struct socket *s); /* a pong, or anything else that proves that the peer lives */
/* The peer began the closing handshake: nothing more can be written. */
void socket_peer_closed(struct socket *s);

/* The carrier has room again: pulls in this loop turn. */
void socket_wake(struct socket *s);
/* Writes what there is and there is room for, then the close if one is due. For listen.c, once per
 * loop turn and not from within libwebsockets. */
void socket_pull(struct socket *s);

/* With flush all that waits is sent before. The first call counts. */
void socket_close(struct socket *s, unsigned code, const char *reason, bool flush);

#endif
