#include "tests/lib/test.h"

#include "gateway/door/listen_address.h"

static void check(const char *text, const char *host, int port, bool ipv6, bool loopback)
{
	struct listen_address a;
	assert_int_equal(listen_address_parse(text, &a, NULL), 0);
	assert_string_equal(a.host, host);
	assert_int_equal(a.port, port);
	assert_int_equal(a.ipv6, ipv6);
	assert_int_equal(a.loopback, loopback);
}

TEST(listen_address, forms_that_are_known)
{
	check("127.0.0.1:8899", "127.0.0.1", 8899, false, true);
	check("127.9.9.9:0", "127.9.9.9", 0, false, true);
	check("localhost:1", "127.0.0.1", 1, false, true);
	check("[::1]:8899", "::1", 8899, true, true);
	check("[fd00::1]:8899", "fd00::1", 8899, true, false);
	check("10.0.0.1:80", "10.0.0.1", 80, false, false);
	check("0.0.0.0:80", "", 80, false, false);
	check("*:80", "", 80, false, false);
	check(":80", "", 80, false, false);
}

TEST(listen_address, what_is_none_is_refused)
{
	static const char *const bad[] = {"", "8899", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
		"127.0.0.1:-1", "127.0.0.1:80x", "::1:8899", "[::1:8899", "[127.0.0.1]:80",
		"host.test:80", "1.2.3:80"};
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct listen_address a;
		struct err err = {0};
		assert_int_equal(listen_address_parse(bad[i], &a, &err), E_INVALID);
		assert_true(err.text[0] != '\0');
	}
}

TEST(listen_address, an_address_that_is_not_ours_cannot_be_listened_on)
{
	struct listen_address a;
	struct err err = {0};
	assert_int_equal(listen_address_parse("203.0.113.7:0", &a, NULL), 0);
	assert_int_equal(listen_address_probe(&a, &err), E_IO);
	assert_int_equal(listen_address_parse("127.0.0.1:0", &a, NULL), 0);
	assert_int_equal(listen_address_probe(&a, &err), 0);
}

RUN(TEST_ROW(listen_address, forms_that_are_known),
	TEST_ROW(listen_address, what_is_none_is_refused),
	TEST_ROW(listen_address, an_address_that_is_not_ours_cannot_be_listened_on))
