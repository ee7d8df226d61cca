#include "gateway/base/ini_file.h"

#include <ini.h>
#include <string.h>

/* inih keeps 49 bytes of a section or a name and says nothing about the rest. */
#define INI_NAME_MAX 49

struct reader {
	FILE *file;
	const char *path;
	int line;
	int (*on_row)(void *data, const char *section, const char *name, const char *value,
		struct err *err);
	void *data;
	struct err *err;
	int status; /* of the first fault; afterwards rows are skipped */
};

static char *fail_line(struct reader *r, const char *what)
{
	r->status = err_set(r->err, E_INVALID, "%s line %d: %s", r->path, r->line, what);
	return NULL;
}

/* One line a call, as inih wants it; NULL ends the file. */
static char *read_line(char *text, int size, void *data)
{
	struct reader *r = data;
	if (r->status != 0)
		return NULL;
	memset(text, 0, (size_t)size);
	if (!fgets(text, size, r->file)) {
		if (ferror(r->file))
			r->status = err_set(r->err, E_IO, "%s cannot be read", r->path);
		return NULL;
	}
	r->line++;
	size_t len = strlen(text);
	if (len == 0 || (text[len - 1] != '\n' && !feof(r->file)))
		return fail_line(
			r, len + 2 < (size_t)size
				   ? "a byte 0, is this a text file?"
				   : "the line is too long (198 bytes are allowed; lists may "
				     "be given in several lines)");
	return text;
}

static int on_value(void *data, const char *section, const char *name, const char *value)
{
	struct reader *r = data;
	if (r->status != 0)
		return 1;
	if (strlen(section) >= INI_NAME_MAX || strlen(name) >= INI_NAME_MAX) {
		(void)fail_line(r, "the name is too long (48 bytes are allowed)"); /* kept in r */
		return 1;
	}
	r->status = r->on_row(r->data, section, name, value ? value : "", r->err);
	if (r->status != 0)
		err_wrap(r->err, "%s line %d", r->path, r->line);
	return 1;
}

int ini_file_read(FILE *file, const char *path,
	int (*on_row)(void *data, const char *section, const char *name, const char *value,
		struct err *err),
	void *data, struct err *err)
{
	struct reader r = {.file = file, .path = path, .on_row = on_row, .data = data, .err = err};
	int line = ini_parse_stream(read_line, &r, on_value, &r);
	if (r.status != 0)
		return r.status;
	if (line < 0)
		return err_set(err, E_NOMEM, "%s cannot be read: out of memory", path);
	if (line > 0)
		return err_set(err, E_INVALID, "%s line %d is neither [section] nor name = value",
			path, line);
	return 0;
}
