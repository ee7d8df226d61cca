#include "frontend-adapter/language.h"

#include <string.h>

static size_t word(const char *at, char ret[LANGUAGE_SIZE])
{
	size_t len = strcspn(at, " \t,;:={}()\"'"), n = 0;
	for (; n < len && n + 1 < LANGUAGE_SIZE; n++)
		ret[n] = (char)(at[n] >= 'A' && at[n] <= 'Z' ? at[n] - 'A' + 'a' : at[n]);
	while (n > 0 && n < len && ((unsigned char)at[n] & 0xc0) == 0x80)
		n--; /* not amid a character */
	ret[n] = '\0';
	return len;
}

void language_name(const char *info, char ret[LANGUAGE_SIZE])
{
	info += strspn(info, " \t{.");
	size_t len = word(info, ret);
	if (strcmp(ret, "code-cell") == 0 || strcmp(ret, "code") == 0)
		(void)word(info + len + strspn(info + len, " \t}{."), ret);
}

bool language_is_python(const char *name)
{
	static const char *const names[] = {"python", "py", "python3", "py3", "ipython", "ipython3",
		"pycon", "python-repl", "python-console", "pyrepl", "jupyter", "jupyter-python",
		"tool_code", "python_execute", "python-exec"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, "python3.", 8) == 0 || strncmp(name, "py3.", 4) == 0;
}
