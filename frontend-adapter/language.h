/* Names of languages as fences and tools spell them. */
#ifndef COPPICE_FRONTEND_ADAPTER_LANGUAGE_H
#define COPPICE_FRONTEND_ADAPTER_LANGUAGE_H

#include "gateway/base/base.h"

#define LANGUAGE_SIZE 32

/* The language that a fence's info names, small letters, "" if it names none: "Python3 title=x",
 * "{python}", "{.py .numberLines}", "{code-cell} ipython3". */
void language_name(const char *info, char ret[LANGUAGE_SIZE]);
bool language_is_python(const char *name);

#endif
