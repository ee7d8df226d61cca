#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "gateway/base/crypto.h"
#include "gateway/cli.h"
#include "gateway/cli_finding.h"

static const char *const grades[] = {"OK", "WARN", "FAIL"};

/* Texts of engine and server go to a terminal: nothing that could steer it. */
static void print_text(const char *text)
{
	for (; *text; text++)
		putchar((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

void finding(struct findings *f, enum grade grade, const char *topic, const char *next,
	const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args); /* for people: cut if it is that long */
	va_end(args);
	f->n[grade]++;
	printf("%-4s  %-10s  ", grades[grade], topic);
	print_text(text);
	putchar('\n');
	if (*next)
		printf("                  -> %s\n", next);
}

static void tell_engine(struct findings *f, const cJSON *engine)
{
	const cJSON *warning;
	bool isolates = !cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(engine, "isolates"));
	cJSON_ArrayForEach (warning, cJSON_GetObjectItemCaseSensitive(engine, "warnings")) {
		if (cJSON_IsString(warning))
			finding(f, GRADE_WARN, engine->string,
				isolates ? ""
					 : "run without --engine process for code you do not trust",
				"%s", warning->valuestring);
	}
}

/* What the running server knows of its engines. */
static void tell_engines(struct findings *f, const struct cli_question *q)
{
	const cJSON *engine;
	cJSON_ArrayForEach (engine, q->tree) {
		if (cJSON_IsObject(engine) && engine->string)
			tell_engine(f, engine);
	}
}

/* True if a running server told about its engines. */
static bool doctor_server(
	struct findings *f, const struct config *config, const char *url, const char *token)
{
	static const char *const paths[] = {"/admin/show/engine"};
	struct cli_server server;
	struct cli_question q = {0};
	struct err err;
	int status = cli_server_find(config, url, token, &server, &err);
	if (status == 0)
		status = cli_ask_server(&server, paths, 1, &q, &err);
	if (status != 0)
		finding(f, GRADE_WARN, "gateway", "", "%s", err.text);
	else if (q.status == 0)
		finding(f, GRADE_FAIL, "gateway", "look at its log; start it again if it is gone",
			"%s does not answer: %s", server.url, q.err.text);
	else if (q.status != 200)
		finding(f, GRADE_WARN, "gateway", "give --token of a row with the scope admin",
			"%s answers, but does not show its engines to this token (HTTP %d)",
			server.url, q.status);
	else
		finding(f, GRADE_OK, "gateway", "", "runs at %s", server.url);
	bool told = status == 0 && q.status == 200;
	tell_engines(f, &q);
	cli_questions_done(&q, 1);
	return told;
}

static bool uses_engine(const struct config *config, const char *name)
{
	char item[64];
	const char *at = config->engine;
	while (config_list_next(&at, item, sizeof item))
		if (strcmp(item, name) == 0)
			return true;
	return false;
}

/* What no setting of ours can change, said plainly; told: the server has warned of process. */
static void tell_limits_of_protection(struct findings *f, const struct config *config, bool told)
{
	if (uses_engine(config, "process") && !told)
		finding(f, GRADE_WARN, "protection",
			"leave it out of --engine unless all code is trusted",
			"engine process isolates nothing: kernels read and write what you can");
	if (uses_engine(config, "docker"))
		finding(f, GRADE_OK, "protection", "",
			"engine docker: containers share the kernel of this machine; a hole in it "
			"is a hole "
			"in the sandbox, and so is access to the engine's socket");
}

static int run(int argc, char **argv)
{
	const char *url = cli_take_value(&argc, argv, "--url");
	const char *token = cli_take_value(&argc, argv, "--token");
	struct config config;
	struct findings f = {0};
	struct err err;
	int status = cli_config(&config, argc, argv);
	if (status != CLI_OK)
		return status;
	if (crypto_init(&err) != 0)
		finding(&f, GRADE_FAIL, "crypto", "", "%s", err.text);
	doctor_host(&f, &config);
	if (uses_engine(&config, "docker"))
		doctor_engine(&f, &config);
	bool told = doctor_server(&f, &config, url, token);
	tell_limits_of_protection(&f, &config, told);
	config_done(&config);
	printf("%u good, %u to look at, %u failed\n", f.n[GRADE_OK], f.n[GRADE_WARN],
		f.n[GRADE_FAIL]);
	return f.n[GRADE_FAIL] > 0 ? CLI_FAILED : CLI_OK;
}

const struct command command_doctor = {
	.name = "doctor",
	.about = "what is wrong with the set-up, and what the engine does not protect",
	.usage = "  --url URL               a gateway elsewhere (default: the one of the data "
		 "folder)\n"
		 "  --token SECRET          its token (default: the first of the token file)\n",
	.takes_options = true,
	.run = run,
};
