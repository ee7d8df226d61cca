#include "gateway/spine/past.h"

#include <string.h>

struct again {
	uint64_t now, then;
};

struct past {
	uint64_t last;
	struct live_entry *rows; /* by hash, then number */
	size_t n;
	struct again *agains; /* by number: they only rise */
	size_t n_agains, size;
	bool ended;
};

static int compare(const void *a, const void *b)
{
	const struct live_entry *x = a, *y = b;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

struct past *past_new(struct live *l, uint64_t last)
{
	struct past *p = xcalloc(1, sizeof *p);
	struct live_entry *rows = live_entries(l);
	p->last = last;
	p->rows = xcalloc(LIVE_ENTRIES, sizeof *p->rows);
	for (size_t i = 0; i < LIVE_ENTRIES; i++) {
		if (rows[i].number == 0)
			continue;
		p->rows[p->n++] = rows[i];
		if (rows[i].number > last)
			rows[i].number = 0;
	}
	qsort(p->rows, p->n, sizeof *p->rows, compare);
	return p;
}

void past_free(struct past *p)
{
	if (!p)
		return;
	free(p->rows);
	free(p->agains);
	free(p);
}

void past_end(struct past *p)
{
	if (!p)
		return;
	p->ended = true;
	free(TAKE(p->rows));
	p->n = 0;
}

/* The last row of that message: a long one may have been cut into several entries. */
static const struct live_entry *find(const struct past *p, const struct jmsg *m)
{
	if (!p || p->ended)
		return NULL;
	uint64_t hash = live_hash(m);
	size_t from = 0, to = p->n;
	while (from < to) {
		size_t mid = from + (to - from) / 2;
		if (p->rows[mid].hash <= hash)
			from = mid + 1;
		else
			to = mid;
	}
	return from > 0 && p->rows[from - 1].hash == hash ? &p->rows[from - 1] : NULL;
}

bool past_has(const struct past *p, const struct jmsg *m)
{
	const struct live_entry *row = find(p, m);
	return row && row->number <= p->last;
}

bool past_receiver(const struct past *p, const struct jmsg *m, uint64_t *ret_to)
{
	const struct live_entry *row = find(p, m);
	if (row)
		*ret_to = row->to;
	return row != NULL;
}

void past_again(struct past *p, const struct jmsg *m, uint64_t number)
{
	const struct live_entry *row = find(p, m);
	if (row)
		past_said(p, number, row->number);
}

void past_said(struct past *p, uint64_t now, uint64_t then)
{
	if (!p)
		return;
	if (p->n_agains == p->size) {
		size_t size = p->size ? 2 * p->size : 64;
		struct again *agains = realloc(p->agains, size * sizeof *agains);
		if (!agains)
			return; /* it is sent twice then */
		p->agains = agains;
		p->size = size;
	}
	p->agains[p->n_agains++] = (struct again){.now = now, .then = then};
}

bool past_had(const struct past *p, uint64_t number, uint64_t had)
{
	if (!p || p->n_agains == 0)
		return false;
	size_t from = 0, to = p->n_agains;
	while (from < to) {
		size_t mid = from + (to - from) / 2;
		if (p->agains[mid].now < number)
			from = mid + 1;
		else
			to = mid;
	}
	return from < p->n_agains && p->agains[from].now == number && p->agains[from].then < had;
}
