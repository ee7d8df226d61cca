#include "history/pins.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gateway/base/hash.h"
#include "history/chunk.h"

#define KEY_SIZE 160

struct pin {
	char key[KEY_SIZE]; /* "HISTORY/NAME" */
	int64_t since_s;
	UT_hash_handle hh;
};

struct pins {
	pthread_mutex_t lock;
	struct pin *all; /* oldest first */
};

struct pins *pins_new(void)
{
	struct pins *pins = xcalloc(1, sizeof *pins);
	(void)pthread_mutex_init(&pins->lock, NULL); /* cannot fail */
	return pins;
}

static void drop(struct pins *pins, struct pin *pin)
{
	HASH_DEL(pins->all, pin);
	free(pin);
}

void pins_free(struct pins *pins)
{
	struct pin *pin, *next;
	if (!pins)
		return;
	HASH_ITER (hh, pins->all, pin, next) {
		drop(pins, pin);
	}
	(void)pthread_mutex_destroy(&pins->lock); /* nobody has it */
	free(pins);
}

static int64_t now_s(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
	return now.tv_sec;
}

static struct pin *find(
	struct pins *pins, const char *history, const char *name, char key[KEY_SIZE])
{
	struct pin *pin = NULL;
	(void)snprintf(key, KEY_SIZE, "%.80s/%.64s", history, name); /* an id and a hash fit */
	HASH_FIND_STR(pins->all, key, pin);
	return pin;
}

/* The first is the oldest: one that is asked for again becomes the last. */
static void drop_old(struct pins *pins, int64_t now)
{
	while (pins->all &&
		(pins->all->since_s + CHUNK_GRACE < now || HASH_COUNT(pins->all) >= PINS_MAX))
		drop(pins, pins->all);
}

void pins_add(struct pins *pins, const char *history, const char *name)
{
	char key[KEY_SIZE];
	int64_t now = now_s();
	pthread_mutex_lock(&pins->lock);
	struct pin *pin = find(pins, history, name, key);
	if (pin)
		drop(pins, pin);
	drop_old(pins, now);
	pin = xcalloc(1, sizeof *pin);
	memcpy(pin->key, key, sizeof pin->key);
	pin->since_s = now;
	HASH_ADD_STR(pins->all, key, pin);
	pthread_mutex_unlock(&pins->lock);
}

void pins_drop(struct pins *pins, const char *history, const char *name)
{
	char key[KEY_SIZE];
	pthread_mutex_lock(&pins->lock);
	struct pin *pin = find(pins, history, name, key);
	if (pin)
		drop(pins, pin);
	pthread_mutex_unlock(&pins->lock);
}

bool pins_has(struct pins *pins, const char *history, const char *name)
{
	char key[KEY_SIZE];
	pthread_mutex_lock(&pins->lock);
	drop_old(pins, now_s());
	bool there = find(pins, history, name, key) != NULL;
	pthread_mutex_unlock(&pins->lock);
	return there;
}

void pins_each(struct pins *pins, const char *history,
	void (*on_name)(void *data, const char *name), void *data)
{
	struct pin *pin, *next;
	size_t len = strlen(history);
	pthread_mutex_lock(&pins->lock);
	drop_old(pins, now_s());
	HASH_ITER (hh, pins->all, pin, next) {
		if (strncmp(pin->key, history, len) == 0 && pin->key[len] == '/')
			on_name(data, pin->key + len + 1);
	}
	pthread_mutex_unlock(&pins->lock);
}
