/* A part of fake_engine.c, which includes it: parks, branches, and looks at what is left. */
#ifndef COPPICE_FAKE_ENGINE_PARKS_H
#define COPPICE_FAKE_ENGINE_PARKS_H

static int fake_revive(
	struct slot *slot, const struct line_start *start, int64_t park, struct err *err)
{
	struct fake_engine *e = engine_of(slot);

	if (faulty(e, err))
		return E_ENGINE;
	e->revived++;
	e->park = park;
	note_start(e, start);
	add_line(CONTAINER_OF(slot, struct fake_slot, slot), start);
	return 0;
}

static int fake_look(struct slot *slot, unsigned line,
	void (*cb)(void *data, const struct err *left), void *data, struct err *err)
{
	struct fake_engine *e = engine_of(slot);
	struct word *w;

	(void)line;
	e->looks++;
	if (faulty(e, err))
		return E_ENGINE;
	if (e->hangs_look)
		return 0;
	w = say(CONTAINER_OF(slot, struct fake_slot, slot), SAY_LOOKED);
	w->looked = cb;
	w->data = data;
	return 0;
}

static int fake_can_branch(struct slot *slot, struct err *err)
{
	return engine_of(slot)->no_branches ? err_set(err, E_UNAVAILABLE, "an older image") : 0;
}

static void fake_drop_folder(struct slot *slot, const char *folder)
{
	struct fake_engine *e = engine_of(slot);

	snprintf(e->dropped, sizeof(e->dropped), "%s", folder);
}

static void fake_release(struct slot *slot, int64_t park)
{
	engine_of(slot)->released = park;
}

void fake_engine_parks(struct fake_engine *e, int64_t park, const char *msg_id, const char *text)
{
	const struct slot_watcher *w = &e->slot->slot.watcher;
	const struct slot_parked parked = {.park = park,
		.line = e->slot->line,
		.kernel_id = e->parks_of ? e->parks_of : "",
		.msg_id = msg_id,
		.text = {(const uint8_t *)text, strlen(text)}};

	w->on_parked(w->data, &parked);
}

void fake_engine_unparks(struct fake_engine *e, int64_t park)
{
	const struct slot_watcher *w = &e->slot->slot.watcher;

	w->on_unparked(w->data, park, "thinned");
}

void fake_engine_says_revived(struct fake_engine *e, unsigned line, const char *text)
{
	const struct slot_watcher *w = &e->slot->slot.watcher;

	w->on_revived(w->data, line, (struct bytes){(const uint8_t *)text, strlen(text)});
}

#endif
