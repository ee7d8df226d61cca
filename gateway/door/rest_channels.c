#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/base/jmsg.h"
#include "gateway/door/auth.h"
#include "gateway/door/channels.h"
#include "gateway/door/rest.h"
#include "gateway/door/route.h"

#define CHANNELS_PATH "/api/kernels/{id}/channels"
#define OFFER_MAX     126 /* longer ones make libwebsockets hang up */

/* libwebsockets reads the list after us and hangs up without an answer on what it cannot parse. */
static bool is_plain_name(const char *at, size_t len)
{
	if (len == 0 || len > 60 || (at[0] >= '0' && at[0] <= '9'))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_",
			    at[i]))
			return false;
	return true;
}

/* The framing for a list of offers: v1 if it is in it; none offered is the legacy one. A name that
 * we do not speak is never selected, since the client would go on in it. */
static int negotiate(const char *offers, enum framing *ret, struct err *err)
{
	*ret = FRAMING_LEGACY;
	if (!offers)
		return 0;
	if (strlen(offers) > OFFER_MAX)
		return err_set(err, E_INVALID, "the list of subprotocols is too long");
	for (const char *at = offers; *at;) {
		at += strspn(at, ", \t");
		size_t len = strcspn(at, ", \t");
		if (len == 0)
			break;
		if (!is_plain_name(at, len))
			return err_set(err, E_INVALID, "a malformed list of subprotocols");
		if (bytes_equal((struct bytes){(const uint8_t *)at, len}, V1_PROTOCOL)) {
			*ret = FRAMING_V1;
			return 0;
		}
		at += len;
	}
	return err_set(err, E_INVALID, "the only subprotocol spoken here is " V1_PROTOCOL);
}

/* Tornado's client without Origin and subprotocol, but with a session: jupyter_server's proxy. */
static unsigned find_traits(const struct call *r, const char *session_id)
{
	const char *agent = r->header[HEADER_USER_AGENT];
	if (!agent || strncmp(agent, "Tornado/", 8) != 0)
		return 0;
	if (r->header[HEADER_ORIGIN] || r->header[HEADER_WS_PROTOCOL] || !session_id)
		return TRAIT_CAPPED;
	return TRAIT_CAPPED | TRAIT_NO_BINARY;
}

/* Said before the upgrade, what the spine would refuse after it: a page then asks for the kernel
 * and shows what it is, instead of connecting again and again. */
static int check_desk(const struct desk *desk, struct err *err)
{
	struct cJSON *model = desk_model(desk);
	const char *state = rest_text(model, "execution_state");
	const char *reason = rest_text(model, "reason");
	int status = 0;
	if (state && strcmp(state, "dead") == 0)
		status = err_set(
			err, E_DEAD, "the kernel is dead: %s", reason ? reason : "it has ended");
	cJSON_Delete(model);
	return status;
}

static int read_session_id(const struct call *r, const char **ret, struct err *err)
{
	const char *id = call_query(r, "session_id");
	if (id && strlen(id) >= JMSG_ID_MAX)
		return err_set(
			err, E_INVALID, "session_id is longer than %d bytes", JMSG_ID_MAX - 1);
	*ret = id && id[0] != '\0' ? id : NULL;
	return 0;
}

int channels_admit(struct call *r, struct socket_setup *ret, struct err *err)
{
	const char *path = call_path(r);
	if (!path || !route_match(CHANNELS_PATH, path, r->param))
		return err_set(err, E_NOT_FOUND, "no WebSocket is here");
	int status = auth_check(r, SCOPE_RUN, err);
	if (status == 0)
		status = kernels_find(r->door->gw->kernels, r->owner, r->param[0], &ret->desk, err);
	if (status == 0)
		status = check_desk(ret->desk, err);
	if (status == 0)
		status = read_session_id(r, &ret->session_id, err);
	if (status == 0)
		status = negotiate(r->header[HEADER_WS_PROTOCOL], &ret->framing, err);
	if (status != 0)
		return status;
	ret->traits = find_traits(r, ret->session_id);
	return 0;
}

/* Reached without an upgrade. */
static void channels_get(struct call *r)
{
	struct err err;
	struct desk *desk = NULL;
	if (kernels_find(r->door->gw->kernels, r->owner, r->param[0], &desk, &err) == 0)
		err_set(&err, E_INVALID, "channels is a WebSocket");
	answer_error(r, &err);
}

const struct route rest_channels_routes[] = {
	{METHOD_GET, CHANNELS_PATH, SCOPE_RUN, channels_get},
	{0},
};
