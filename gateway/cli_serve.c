/* coppice serve: the ordered start, and the ordered end that SIGINT, SIGTERM and SIGHUP begin.
 *
 * SIGTERM leaves kernels running that can live on: the next start adopts them.
 *
 *   start: settings, log, loop, clock, owners, bridge, histories, kernels, sessions, renderer,
 *          adoption, chats, sweep, door, "ready"
 *   end:   door, chats, kernels, histories, bridge, renderer, sessions, clock, the loop runs empty,
 *          door's memory
 *
 * A start that fails half-way takes the same end; what was not opened is passed over. */
#include <assert.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "frontend-adapter/adapter.h"
#include "gateway/base/crypto.h"
#include "gateway/base/file.h"
#include "gateway/cli.h"
#include "gateway/cli_ready.h"
#include "gateway/door/chat_client.h"
#include "gateway/door/listen.h"
#include "gateway/spine/forget.h"
#include "gateway/spine/kernels.h"
#include "gateway/spine/owners.h"
#include "gateway/spine/scribe.h"
#include "gateway/spine/sessions.h"

/* Longer than all bounds of the rooms together; then the process goes as it is. */
#define END_TIMEOUT_MS 15000
/* A person's cell is recorded at once, as people see it; a burst's in a second at the latest. */
#define GATHER_MS      100
#define GATHER_MOST_MS 1000

struct serve {
	struct gateway gw;
	uv_loop_t loop;
	uv_signal_t signals[3]; /* SIGINT, SIGTERM, SIGHUP */
	uv_timer_t bound;	/* of the end; not gw.clock's, which the end closes */
	struct bridge_env env;
	bool show_token;
	bool sweeping; /* the bridge will call on_swept */
	bool ending;
	int end_signal; /* 0: a start that failed */
	int exit_code;
};

static void on_bound(uv_timer_t *timer)
{
	struct serve *s = timer->data;
	log_error(&s->gw.log, "end_timeout ms=%d", END_TIMEOUT_MS);
	server_file_remove(&s->gw.config);
	_exit(CLI_FAILED);
}

static void end_rest(void *data)
{
	struct serve *s = data;
	if (s->gw.sessions)
		sessions_free(s->gw.sessions);
	if (s->gw.kernels)
		kernels_free(s->gw.kernels);
	clock_close(s->gw.clock, NULL, NULL);
	/* What still holds the loop is the door's and must go by itself. */
	for (unsigned i = 0; i < ARRAY_LEN(s->signals); i++)
		uv_unref((uv_handle_t *)&s->signals[i]);
}

static void end_renderer(void *data)
{
	struct serve *s = data;
	if (s->gw.renderer)
		renderer_close(TAKE(s->gw.renderer), end_rest, s);
	else
		end_rest(s);
}

static void close_bridge(void *data)
{
	struct serve *s = data;
	s->gw.histories = NULL;
	if (s->gw.bridge)
		bridge_close(s->gw.bridge, end_renderer, s);
	else
		end_renderer(s);
}

/* What the kernels left to be recorded is handed over by now. */
static void end_histories(void *data)
{
	struct serve *s = data;
	if (s->gw.histories)
		histories_close(s->gw.histories, close_bridge, s);
	else
		close_bridge(s);
}

static void end_kernels(void *data)
{
	struct serve *s = data;
	/* A start that failed ends no kernel that it found. */
	if (s->gw.kernels && (s->end_signal == SIGTERM || s->end_signal == 0))
		kernels_leave_all(s->gw.kernels, end_histories, s);
	else if (s->gw.kernels)
		kernels_end_all(s->gw.kernels, end_histories, s);
	else
		end_histories(s);
}

static void end_chats(void *data)
{
	struct serve *s = data;
	if (s->gw.chats)
		chats_close(TAKE(s->gw.chats), end_kernels, s);
	else
		end_kernels(s);
}

static void end_door(struct serve *s)
{
	bool restart = s->end_signal == SIGTERM;
	if (s->gw.door)
		door_close(s->gw.door, restart ? 1012 : 1001,
			restart ? "gateway restarts" : "gateway ends", end_chats, s);
	else
		end_chats(s);
}

/* While the sweep runs the end waits for on_swept. */
static void serve_end(struct serve *s)
{
	if (s->ending)
		return;
	s->ending = s->gw.ending = true;
	int status = uv_timer_start(&s->bound, on_bound, END_TIMEOUT_MS, 0);
	assert(status == 0);
	(void)status; /* only read by the assert */
	uv_unref((uv_handle_t *)&s->bound);
	if (!s->sweeping)
		end_door(s);
}

static void serve_fail(struct serve *s, const struct err *err)
{
	log_error(&s->gw.log, "start_failed reason=%s", err->text);
	s->exit_code = CLI_FAILED;
	serve_end(s);
}

static void on_signal(uv_signal_t *handle, int signo)
{
	struct serve *s = handle->data;
	if (s->ending)
		return;
	log_info(&s->gw.log, "ending signal=%s", strsignal(signo));
	s->end_signal = signo;
	serve_end(s);
}

static void on_swept(void *data)
{
	struct serve *s = data;
	struct err err;
	s->sweeping = false;
	if (s->ending) {
		end_door(s);
		return;
	}
	int status = door_open(&s->gw, &s->gw.door, &err);
	if (status == 0)
		status = cli_ready(&s->gw, door_port(s->gw.door), s->show_token, &err);
	if (status != 0)
		serve_fail(s, &err);
	else
		kernels_begin(s->gw.kernels);
}

/* Every kernel costs some fifteen descriptors. */
static void raise_limits(const struct log *log)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		log_warn(log, "descriptor_limit_not_raised");
}

/* A terminal that goes takes us along, unless nohup asked for the opposite. */
static bool is_ignored_hangup(int signo)
{
	struct sigaction now;
	return signo == SIGHUP && sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static void open_loop(struct serve *s)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	int status = uv_loop_init(&s->loop);
	assert(status == 0); /* no memory or no descriptors at the very start: nothing to save */
	s->gw.loop = &s->loop;
	s->gw.clock = clock_new(&s->loop);
	s->gw.started_us = clock_wall_us(s->gw.clock);
	status = uv_timer_init(&s->loop, &s->bound);
	s->bound.data = s;
	for (unsigned i = 0; status == 0 && i < ARRAY_LEN(signals); i++) {
		status = uv_signal_init(&s->loop, &s->signals[i]);
		s->signals[i].data = s;
		if (status == 0 && !is_ignored_hangup(signals[i]))
			status = uv_signal_start(&s->signals[i], on_signal, signals[i]);
	}
	assert(status == 0);
	(void)status; /* only read by the asserts */
}

static int open_histories(struct gateway *gw, struct err *err)
{
	char folder[PATH_MAX];
	const struct histories_setup setup = {
		.loop = gw->loop,
		.clock = gw->clock,
		.log = &gw->log,
		.folder = folder,
		.on_recorded = scribe_recorded,
		.keeping = {.every = (unsigned)gw->config.pack_every,
			.idle_ms = (uint64_t)gw->config.pack_idle},
		.gather_ms = GATHER_MS,
		.gather_most_ms = GATHER_MOST_MS,
	};
	int n = snprintf(folder, sizeof folder, "%s/history", gw->config.data_dir);
	if (n < 0 || (size_t)n >= sizeof folder)
		return err_set(err, E_INVALID, "data_dir is too long");
	return gw->config.record ? histories_open(&setup, &gw->histories, err) : 0;
}

/* The program lies beside ours. */
static int open_renderer(struct gateway *gw, struct err *err)
{
	static const char name[] = "coppice-render";
	char path[PATH_MAX];
	size_t len = sizeof path - sizeof name;
	if (uv_exepath(path, &len) != 0)
		return err_set(err, E_IO, "where this program lies cannot be found out");
	char *slash = strrchr(path, '/');
	memcpy(slash ? slash + 1 : path, name, sizeof name);
	const struct renderer_setup setup = {
		.loop = gw->loop, .clock = gw->clock, .log = &gw->log, .program = path};
	gw->renderer = renderer_open(&setup);
	return 0;
}

static void on_recorded(void *data, const char *msg_id, const char *node)
{
	const struct gateway *gw = data;
	if (gw->chats)
		chats_recorded(gw->chats, msg_id, node);
}

/* The key comes from the environment alone, so that it stands in no file and no list of processes.
 */
static int open_chats(struct gateway *gw, struct err *err)
{
	char folder[PATH_MAX];
	const struct chats_setup setup = {
		.loop = gw->loop,
		.clock = gw->clock,
		.log = &gw->log,
		.folder = folder,
		.model_url = gw->config.model_url,
		.model_name = gw->config.model_name,
		.model_key = getenv("COPPICE_MODEL_KEY"),
		.model_timeout_ms = (uint64_t)gw->config.model_timeout,
		.model_history = (size_t)gw->config.model_history,
		.renderer = gw->renderer,
		.runner = &chat_client_runner,
		.runner_data = gw,
	};
	int n = snprintf(folder, sizeof folder, "%s/chat", gw->config.data_dir);
	if (n < 0 || (size_t)n >= sizeof folder)
		return err_set(err, E_INVALID, "data_dir is too long");
	int status = chats_open(&setup, &gw->chats, err);
	if (status == 0)
		kernels_watch(
			gw->kernels, &(struct kernels_watch){.recorded = on_recorded, .data = gw});
	return status;
}

static int open_rooms(struct serve *s, struct err *err)
{
	struct gateway *gw = &s->gw;
	int status = crypto_init(err);
	if (status == 0)
		status = folders_make(gw->config.data_dir, err);
	if (status == 0)
		status = owners_open(gw->config.token_file, &gw->owners, err);
	s->env = (struct bridge_env){gw->loop, gw->clock, &gw->config, &gw->log};
	if (status == 0)
		status = bridge_open(&s->env, &gw->bridge, err);
	if (status == 0)
		status = open_histories(gw, err);
	if (status == 0)
		status = kernels_open(gw, &gw->kernels, err);
	if (status == 0)
		status = sessions_open(gw, &gw->sessions, err);
	if (status == 0)
		status = open_renderer(gw, err);
	if (status == 0)
		status = kernels_adopt(gw->kernels, err);
	if (status == 0)
		status = open_chats(gw, err);
	if (status == 0)
		forget_resume(gw);
	return status;
}

static void close_loop(struct serve *s)
{
	if (s->gw.door)
		door_free(s->gw.door);
	for (unsigned i = 0; i < ARRAY_LEN(s->signals); i++)
		uv_close((uv_handle_t *)&s->signals[i], NULL);
	uv_close((uv_handle_t *)&s->bound, NULL);
	(void)uv_run(&s->loop, UV_RUN_DEFAULT); /* closes what was unreferenced */
	int status = uv_loop_close(&s->loop);
	if (status != 0) {
		log_error(&s->gw.log, "loop_not_empty reason=%s", uv_strerror(status));
		s->exit_code = CLI_FAILED;
	}
}

static int serve(struct serve *s)
{
	struct err err;
	struct gateway *gw = &s->gw;
	(void)log_level_parse(gw->config.log_level, &gw->log_sink.level); /* config checked it */
	gw->log_sink.json = gw->config.log_json;
	log_init(&gw->log, &gw->log_sink);
	raise_limits(&gw->log);
	open_loop(s);
	if (open_rooms(s, &err) == 0) {
		s->sweeping = true;
		bridge_sweep(gw->bridge, on_swept, s);
	} else {
		serve_fail(s, &err);
	}
	(void)uv_run(&s->loop, UV_RUN_DEFAULT); /* until end_rest has let go of the last handle */
	close_loop(s);
	server_file_remove(&gw->config);
	owners_free(gw->owners);
	log_info(&gw->log, "ended exit=%d", s->exit_code);
	return s->exit_code;
}

static int run(int argc, char **argv)
{
	struct serve s = {0};
	s.show_token = cli_take_flag(&argc, argv, "--show-token");
	int status = cli_config(&s.gw.config, argc, argv);
	if (status != CLI_OK)
		return status;
	status = serve(&s);
	config_done(&s.gw.config);
	return status;
}

const struct command command_serve = {
	.name = "serve",
	.about = "run the gateway",
	.usage = "  --show-token            print the URL with its token even if no terminal reads "
		 "it\n"
		 "                          (also: COPPICE_SHOW_TOKEN=1)\n",
	.takes_options = true,
	.run = run,
};
