/* Runs a fuzz target over files: the committed seeds and findings, as a regression test with any
 * compiler. Arguments: files. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int run_file(const char *path)
{
	FILE *file = fopen(path, "rbe");
	if (!file) {
		perror(path);
		return 1;
	}
	static uint8_t data[1 << 20];
	size_t len = fread(data, 1, sizeof data, file);
	(void)fclose(file); /* read only */
	/* A block of the exact size, so that a sanitizer sees a read past the end. */
	uint8_t *exact = malloc(len ? len : 1);
	if (!exact)
		return 1;
	for (size_t i = 0; i < len; i++)
		exact[i] = data[i];
	(void)LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (run_file(argv[i]))
			return 1;
	}
	printf("%s: %d inputs\n", argv[0], argc - 1);
	return 0;
}
