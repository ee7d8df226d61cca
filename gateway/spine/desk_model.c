/* A desk as others see it. */
#include <cjson/cJSON.h>

#include "gateway/spine/desk.h"
#include "gateway/spine/limits.h"

const char *desk_id(const struct desk *d)
{
	return d->id;
}

bool desk_is_busy(const struct desk *d)
{
	return d->move || limit_holds(d) ||
	       (!d->dead && d->kernel && kernel_state(d->kernel) == KERNEL_BUSY);
}

const char *desk_state(const struct desk *d)
{
	if (d->move || limit_holds(d))
		return "busy"; /* the protocol has no word for it */
	if (d->dead || !d->kernel)
		return "dead";
	switch (kernel_state(d->kernel)) {
	case KERNEL_IDLE:
		return "idle";
	case KERNEL_BUSY:
		return "busy";
	case KERNEL_STARTING:
	case KERNEL_DEAD: /* it is being started again */
	case KERNEL_STATES:
		break;
	}
	return "starting";
}

struct cJSON *desk_model(const struct desk *d)
{
	char stamp[CLOCK_STAMP_SIZE];
	clock_stamp(d->last_activity_us, stamp);
	cJSON *model = cJSON_CreateObject();
	cJSON_AddStringToObject(model, "id", d->id);
	cJSON_AddStringToObject(model, "name", d->name);
	cJSON_AddStringToObject(model, "last_activity", stamp);
	cJSON_AddStringToObject(model, "execution_state", desk_state(d));
	cJSON_AddNumberToObject(model, "connections", (double)clients_attached(d));
	if (d->reason[0])
		cJSON_AddStringToObject(model, "reason", d->reason);
	scribe_add(d, model);
	return model;
}

void desk_touch(struct desk *d)
{
	d->last_activity_us = clock_wall_us(d->gw->clock);
	d->activity_ms = clock_now_ms(d->gw->clock);
}
