/* Code that comes as JSON: a call of a tool, or a whole notebook. Pure, any thread. */
#ifndef COPPICE_FRONTEND_ADAPTER_REPLY_JSON_H
#define COPPICE_FRONTEND_ADAPTER_REPLY_JSON_H

#include "frontend-adapter/runs.h"

enum reply_json {
	REPLY_JSON_NONE,  /* no JSON, or such that nothing in it is meant to be run */
	REPLY_JSON_TAKEN, /* its code is in runs, a notebook's text in prose */
	REPLY_JSON_CUT,	  /* a call or notebook that ends in the midst */
};

/* ret_used: bytes of text that belong to it; what follows is not looked at. Text is UTF-8. */
int reply_json(struct bytes text, struct runs *runs, struct buf *prose, enum reply_json *ret,
	size_t *ret_used, struct err *err);

#endif
