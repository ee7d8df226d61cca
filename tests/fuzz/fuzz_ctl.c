/* Packets that a container sends over ctl. */
#include <cjson/cJSON.h>
#include "kernel-bridge/ctl_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	enum ctl_type type;
	cJSON *message = NULL;
	char about[CTL_TYPE_MAX];
	struct err err;
	if (ctl_message_read((struct bytes){data, len}, &type, &message, about, &err) != 0)
		return 0;
	for (const struct ctl_field *f = ctl_row(type)->fields; f->name; f++) {
		(void)ctl_int(message, f->name, 0);
		(void)ctl_text(message, f->name, "");
		(void)ctl_bool(message, f->name);
	}
	cJSON_Delete(message);
	return 0;
}
