/* What a container tells of its folder: read twice over, as a first word and as one that follows,
 * then told again as a whole, which must be readable as well. */
#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/base/json_tree.h"
#include "gateway/spine/told_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void tell_again(const struct folder *f)
{
	cJSON *change = folder_change(f), *same = NULL;
	AUTO(freep) char *text = json_print(change, NULL);
	struct content_name *names = NULL;
	struct err err;
	size_t n = 0;
	if (text &&
		told_read((struct bytes){(const uint8_t *)text, strlen(text)}, &same, &err) != 0)
		abort();
	if (told_contents(change, &names, &n, &err) == 0)
		for (size_t i = 0; i < n; i++)
			if (strlen(names[i].name) != 40 && strlen(names[i].name) != 64)
				abort();
	free(names);
	cJSON_Delete(same);
	cJSON_Delete(change);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct folder f = {0};
	struct err err;
	for (int i = 0; i < 2; i++) {
		cJSON *change = NULL;
		if (told_read((struct bytes){data, len}, &change, &err) != 0)
			continue;
		(void)folder_apply(&f, change, &err); /* or it was too much */
		tell_again(&f);
		cJSON_Delete(change);
	}
	folder_clear(&f);
	return 0;
}
