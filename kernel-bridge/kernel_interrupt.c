/* Interrupts: by message or by signal, by signal if the message does not help, then a word to
 * people. None may ever hit the next cell. */
#include "kernel-bridge/kernel_interrupt.h"
#include "kernel-bridge/kernel_place.h"

#include <signal.h>

#define SIGNAL_AFTER_MS	  2000
#define NOTICE_AFTER_MS	  5000
#define ANSWER_MAX_MS	  1000 /* a foreign kernel may never answer */
#define SIGNAL_LANDING_MS 100  /* the supervisor does not say when it has sent one */

static int send_signal(struct kernel *k, struct err *err)
{
	k->signalled = true;
	timer_start(kernel_clock(k), &k->gate_timer, SIGNAL_LANDING_MS);
	return k->place->slot->engine->ops->signal(k->place->slot, k->line, SIGINT, err);
}

static void on_interrupt(struct timer *t)
{
	struct kernel *k = CONTAINER_OF(t, struct kernel, interrupt_timer);
	struct err err;

	if (!kernel_is(k, KERNEL_BUSY))
		return;
	if (k->signalled) {
		kernel_notice(k, "the kernel does not obey the interrupt; it can be restarted");
		return;
	}
	if (send_signal(k, &err) < 0)
		log_warn(&k->log, "signal_failed why=%s", err.text);
	timer_start(kernel_clock(k), &k->interrupt_timer, NOTICE_AFTER_MS);
}

static int interrupt(struct kernel *k, struct err *err)
{
	bool escalates = timer_running(&k->interrupt_timer);
	uint64_t wait_ms = SIGNAL_AFTER_MS;
	int rc;

	if (kernel_is(k, KERNEL_DEAD) || k->dying)
		return err_set(err, E_DEAD, "the kernel is dead");
	if (kernel_is(k, KERNEL_STARTING))
		return err_set(err, E_UNAVAILABLE, "the kernel is starting");
	if (!escalates)
		k->signalled = false;
	if (k->spec->interrupt_mode == INTERRUPT_SIGNAL) {
		rc = send_signal(k, err);
		wait_ms = NOTICE_AFTER_MS;
	} else {
		rc = kernel_ask(k, CHANNEL_CONTROL, "interrupt_request", "{}", err);
		timer_start(kernel_clock(k), &k->gate_timer, ANSWER_MAX_MS);
	}
	/* A second interrupt does not put off what the first one has under way. */
	if (!escalates)
		timer_start(kernel_clock(k), &k->interrupt_timer, wait_ms);
	return rc;
}

void kernel_interrupt(struct kernel *k, void (*cb)(void *data, const struct err *err), void *data)
{
	struct err err = {0};
	int rc = interrupt(k, &err);

	kernel_answer_later(kernel_clock(k), cb, data, rc < 0 ? &err : NULL);
}

void kernel_interrupt_asked(struct kernel *k)
{
	if (!kernel_is(k, KERNEL_BUSY) || timer_running(&k->interrupt_timer))
		return;
	k->signalled = false;
	timer_start(kernel_clock(k), &k->interrupt_timer, SIGNAL_AFTER_MS);
}

void kernel_interrupt_cancel(struct kernel *k)
{
	timer_stop(kernel_clock(k), &k->interrupt_timer);
	k->signalled = false;
}

bool kernel_interrupt_gate(const struct kernel *k)
{
	return timer_running(&k->gate_timer);
}

static void open_gate(struct kernel *k)
{
	/* While starting they wait for the new line. */
	if (kernel_is(k, KERNEL_IDLE) || kernel_is(k, KERNEL_BUSY))
		kernel_flush_kept(k);
}

static void on_gate(struct timer *t)
{
	open_gate(CONTAINER_OF(t, struct kernel, gate_timer));
}

void kernel_interrupt_landed(struct kernel *k)
{
	if (!timer_running(&k->gate_timer))
		return;
	timer_stop(kernel_clock(k), &k->gate_timer);
	open_gate(k);
}

void kernel_interrupt_init(struct kernel *k)
{
	timer_init(&k->interrupt_timer, on_interrupt);
	timer_init(&k->gate_timer, on_gate);
}
