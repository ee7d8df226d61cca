/* One line of `coppice doctor`: how grave, about what, what was found, what to do next. */
#ifndef COPPICE_CLI_FINDING_H
#define COPPICE_CLI_FINDING_H

#include "gateway/base/base.h"
#include "gateway/base/config.h"

enum grade { GRADE_OK, GRADE_WARN, GRADE_FAIL };

struct findings {
	unsigned n[GRADE_FAIL + 1];
};

/* next: what to do, "" if nothing. */
void finding(struct findings *f, enum grade grade, const char *topic, const char *next,
	const char *format, ...) PRINTF(5, 6);

/* cli_doctor_host.c: run folder, token file. */
void doctor_host(struct findings *f, const struct config *config);
/* cli_doctor_engine.c: the container engine, its image, what it limits. Asks the engine itself. */
void doctor_engine(struct findings *f, const struct config *config);

#endif
