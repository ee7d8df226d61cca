/* TEST(area, what_happens) { given...; when...; then...; } on cmocka. A file lists its tests in
 * RUN(TEST_ROW(area, what_happens), ...). */
#ifndef COPPICE_TEST_H
#define COPPICE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define TEST(area, name)     static void area##__##name(void **state __attribute__((unused)))
#define TEST_ROW(area, name) cmocka_unit_test(area##__##name)
#define RUN(...)                                                                                   \
	int main(void)                                                                             \
	{                                                                                          \
		const struct CMUnitTest tests[] = {__VA_ARGS__};                                   \
		return cmocka_run_group_tests(tests, NULL, NULL);                                  \
	}

#endif
