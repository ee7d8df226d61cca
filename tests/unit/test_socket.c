/* A WebSocket of the door between a carrier and a spine that are both scripted. */
#include "tests/unit/socket_fixture.c"

TEST(socket, fragments_become_one_message)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	const char *text = REQUEST("execute_request");
	for (size_t i = 0; text[i]; i++) {
		char piece[2] = {text[i], '\0'};
		send_text(f, piece, i == 0, text[i + 1] == '\0');
	}
	assert_int_equal(f->client.n_received, 1);
	assert_string_equal(f->client.received->msg_type, "execute_request");
	assert_null(f->s->in.data);
	teardown(f);
}

TEST(socket, malformed_closes_and_nothing_more_is_taken)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	stream(f, 10);
	send_text(f, "{\"header\":", true, true);
	send_text(f, REQUEST("execute_request"), true, true);
	pull(f);
	assert_int_equal(f->close_code, CLOSE_DATA);
	assert_int_equal(f->client.n_received, 0);
	assert_true(f->client.detached);
	teardown(f);
}

TEST(socket, what_the_spine_refuses_closes_with_policy)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	send_text(f, REQUEST("forbidden_request"), true, true);
	pull(f);
	assert_int_equal(f->close_code, CLOSE_POLICY);
	teardown(f);
}

TEST(socket, over_the_limit_is_told_and_the_socket_lives)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	char big[3000];
	memset(big, 'y', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	send_text(f, "{\"content\":\"", true, false);
	send_text(f, big, false, false);
	send_text(f, big, false, false);
	send_text(f, big, false, true);
	send_text(f, REQUEST("execute_request"), true, true);
	pull(f);
	expect(f, "stream", "message_limit");
	assert_int_equal(f->close_code, 0);
	assert_int_equal(f->client.n_received, 1);
	teardown(f);
}

TEST(socket, a_request_over_the_limit_gets_an_end)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	static const char json[] = REQUEST("execute_request");
	uint8_t head[12 + sizeof json - 1] = {0, 0, 0, 2, 0, 0, 0, 12, 0, 0, 0, sizeof head};
	static const uint8_t rest[5000];
	memcpy(head + 12, json, sizeof json - 1);
	socket_receive(f->s, &(struct piece){{head, sizeof head}, true, true, false});
	socket_receive(f->s, &(struct piece){{rest, sizeof rest}, true, false, true});
	pull(f);
	expect(f, "stream", "message_limit");
	expect(f, "execute_reply", "\"status\":\"error\"");
	expect(f, "status", "idle");
	teardown(f);
}

/* Python clients write the content first. */
TEST(socket, a_request_over_the_limit_gets_an_end_wherever_its_header_stands)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	char big[3000];
	memset(big, 'y', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	send_text(f, "{\"content\": {\"code\": \"", true, false);
	for (unsigned i = 0; i < 4; i++)
		send_text(f, big, false, false);
	send_text(f, "\"}, \"header\": {\"msg_id\": \"m\", \"msg_ty", false, false);
	send_text(f, "pe\": \"execute_request\"}}", false, true);
	pull(f);
	expect(f, "stream", "message_limit");
	expect(f, "execute_reply", "\"status\":\"error\"");
	expect(f, "status", "idle");
	assert_null(f->s->in.data);
	assert_null(f->s->dropped);
	teardown(f);
}

TEST(socket, one_that_goes_amid_a_message_over_the_limit_leaves_nothing)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	char big[5000];
	memset(big, '{', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	send_text(f, big, true, false);
	assert_non_null(f->s->dropped);
	teardown(f); /* the sanitizer tells */
}

TEST(socket, entries_come_in_order_and_large_ones_in_fragments)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	stream(f, 10);
	stream(f, 3 * OUTBOX_SIZE);
	journal(f, &(struct says){CHANNEL_SHELL, "execute_reply", 1, 0});
	pull(f);
	expect(f, "stream", NULL);
	expect(f, "stream", NULL);
	expect(f, "execute_reply", NULL);
	assert_null(f->s->text.data);
	teardown(f);
}

TEST(socket, a_full_carrier_is_left_alone)
{
	struct fixture *f = setup(FRAMING_V1, 0);
	for (unsigned i = 0; i < 10; i++)
		stream(f, OUTBOX_SIZE);
	f->busy = true;
	pull(f);
	assert_int_equal(f->wire.len, 0);
	f->busy = false;
	socket_wake(f->s);
	pull(f);
	assert_true(f->wire.len > (1u << 20) && f->wanted);
	assert_true(f->wire.len < 10 * OUTBOX_SIZE);
	teardown(f);
}

TEST(socket, what_tcp_did_not_acknowledge_goes_back)
{
	struct fixture *f = setup(FRAMING_V1, 0);
	for (unsigned i = 0; i < 1000; i++)
		stream(f, 100);
	pull(f);
	size_t each = f->wire.len / 1000;
	acknowledge(f, each * 600 + each / 2);
	socket_free(TAKE(f->s));
	assert_int_equal(f->client.undelivered, 601);
	teardown(f);
}

TEST(socket, what_was_acknowledged_does_not_come_again)
{
	struct fixture *f = setup(FRAMING_V1, 0);
	stream(f, 100);
	pull(f);
	acknowledge(f, f->wire.len);
	socket_peer_closed(f->s);
	f->unacked += 5; /* the close frame and the FIN */
	socket_free(TAKE(f->s));
	assert_int_equal(f->client.undelivered, 0);
	teardown(f);
}

/* Half of the last block waits in the carrier: TCP's count ends in the middle of ours. */
TEST(socket, what_waits_in_the_carrier_counts_as_not_had)
{
	struct fixture *f = setup(FRAMING_V1, 0);
	for (unsigned i = 0; i < 500; i++)
		stream(f, 1000);
	pull(f);
	size_t each = f->wire.len / 500;
	f->busy = true;
	f->unacked -= 20 * each; /* never reached TCP */
	acknowledge(f, f->unacked);
	socket_free(TAKE(f->s));
	/* A little more than what waits, for pongs that lws sent. */
	assert_true(f->client.undelivered <= 481 && f->client.undelivered >= 480);
	teardown(f);
}

TEST(socket, an_entry_half_written_goes_back)
{
	struct fixture *f = setup(FRAMING_V1, 0);
	stream(f, 20u << 20);
	pull(f);
	acknowledge(f, f->unacked);
	socket_free(TAKE(f->s));
	assert_int_equal(f->client.undelivered, 1);
	teardown(f);
}

TEST(socket, to_a_capped_client_a_large_output_is_a_line)
{
	struct fixture *f = setup(FRAMING_LEGACY, TRAIT_CAPPED);
	stream(f, CAPPED_MAX);
	stream(f, CAPPED_MAX - 2000);
	pull(f);
	expect(f, "stream", "kept back");
	for (unsigned i = 0; i < 20; i++) {
		socket_wake(f->s);
		pull(f);
	}
	expect(f, "stream", "zzz");
	acknowledge(f, f->unacked);
	socket_free(TAKE(f->s));
	assert_int_equal(f->client.undelivered, 0);
	teardown(f);
}

TEST(socket, to_a_capped_client_a_large_reply_is_a_reply)
{
	struct fixture *f = setup(FRAMING_LEGACY, TRAIT_CAPPED);
	journal(f, &(struct says){CHANNEL_SHELL, "inspect_reply", CAPPED_MAX, 0});
	pull(f);
	expect(f, "stream", "kept back");
	expect(f, "inspect_reply", "\"status\":\"error\"");
	teardown(f);
}

TEST(socket, no_binary_frame_to_the_proxy)
{
	struct fixture *f = setup(FRAMING_LEGACY, TRAIT_NO_BINARY | TRAIT_CAPPED);
	bool binary = true;
	journal(f, &(struct says){CHANNEL_IOPUB, "comm_msg", 5, 2});
	journal(f, &(struct says){CHANNEL_IOPUB, "comm_msg", 5, 2});
	pull(f);
	for (unsigned i = 0; i < 3; i++) {
		struct jmsg *m = next_message(f, &binary);
		assert_non_null(m);
		assert_false(binary);
		assert_string_equal(m->msg_type, i == 1 ? "stream" : "comm_msg");
		assert_string_equal(m->parent_id, "asked");
		assert_string_equal(m->session, "kernel-session");
		jmsg_unref(m);
	}
	assert_null(next_message(f, &binary));
	teardown(f);
}

TEST(socket, with_buffers_an_ordinary_client_gets_a_binary_frame)
{
	struct fixture *f = setup(FRAMING_LEGACY, TRAIT_CAPPED);
	bool binary = false;
	journal(f, &(struct says){CHANNEL_IOPUB, "comm_msg", 5, 2});
	pull(f);
	struct jmsg *m = next_message(f, &binary);
	assert_true(binary);
	assert_int_equal(m->n_buffers, 2);
	jmsg_unref(m);
	teardown(f);
}

TEST(socket, a_close_of_the_spine_comes_after_what_waits)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	stream(f, 10);
	f->client.side.on_close(f->client.side.data, CLOSE_NORMAL, "ended");
	assert_int_equal(f->close_code, 0);
	pull(f);
	expect(f, "stream", NULL);
	assert_int_equal(f->close_code, CLOSE_NORMAL);
	assert_true(f->client.detached);
	teardown(f);
}

TEST(socket, a_close_waits_for_what_is_still_read_from_the_file)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	f->client.reads_file = true;
	stream(f, 10);
	f->client.side.on_close(f->client.side.data, CLOSE_NORMAL, "ended");
	pull(f);
	assert_int_equal(f->close_code, 0);
	assert_false(f->client.detached);
	f->client.reads_file = false;
	f->client.side.on_readable(f->client.side.data);
	pull(f);
	expect(f, "stream", NULL);
	assert_int_equal(f->close_code, CLOSE_NORMAL);
	teardown(f);
}

TEST(socket, one_that_does_not_read_is_cut_after_its_close)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	f->busy = true;
	socket_close(f->s, 1012, "restart", false);
	pull(f);
	assert_int_equal(f->close_code, 0);
	fake_clock_advance(f->gw.clock, 10000);
	assert_true(f->cut);
	teardown(f);
}

/* The page answers after all that came before, whatever TCP said of it when the close went out. */
TEST(socket, an_answered_close_says_that_all_was_read)
{
	struct fixture *f = setup(FRAMING_V1, 0);
	stream(f, 100);
	pull(f);
	f->door.closing = true;
	socket_close(f->s, 1012, "restart", false);
	pull(f);
	assert_int_equal(f->close_code, 1012);
	assert_false(f->client.detached);
	stream(f, 100); /* it is for the next socket */
	pull(f);
	f->unacked += 20; /* the close frame */
	acknowledge(f, f->unacked);
	socket_free(TAKE(f->s));
	assert_int_equal(f->client.undelivered, 0);
	assert_int_equal(f->client.head, 1);
	teardown(f);
}

TEST(socket, a_close_without_an_answer_says_nothing)
{
	struct fixture *f = setup(FRAMING_V1, 0);
	stream(f, 100);
	stream(f, 100);
	pull(f);
	acknowledge(f, f->unacked / 2);
	f->door.closing = true;
	socket_close(f->s, 1012, "restart", false);
	pull(f);
	f->unacked += 20; /* the close frame */
	fake_clock_advance(f->gw.clock, 10000);
	assert_true(f->cut);
	socket_free(TAKE(f->s));
	assert_int_equal(f->client.undelivered, 2);
	teardown(f);
}

TEST(socket, one_that_is_replaced_amid_its_close_is_cut_all_the_same)
{
	struct fixture *f = setup(FRAMING_V1, 0);
	f->busy = true;
	socket_close(f->s, 1012, "restart", false);
	pull(f);
	f->client.side.on_replaced(f->client.side.data);
	fake_clock_advance(f->gw.clock, 10000);
	assert_true(f->cut);
	teardown(f);
}

TEST(socket, a_replaced_one_is_mute_and_closed_later)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	stream(f, 10);
	pull(f);
	assert_int_equal(f->client.side.undelivered(f->client.side.data), 1);
	f->client.side.on_replaced(f->client.side.data);
	f->looked = f->wire.len;
	stream(f, 10);
	pull(f);
	assert_int_equal(f->looked, f->wire.len);
	fake_clock_advance(f->gw.clock, 9999);
	assert_int_equal(f->close_code, 0);
	fake_clock_advance(f->gw.clock, 1);
	pull(f);
	assert_int_equal(f->close_code, CLOSE_NORMAL);
	teardown(f);
	/* It was the successor's to detach. */
}

TEST(socket, pings_that_nobody_answers_close_it)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	for (unsigned i = 0; i < 3; i++) {
		struct bytes payload;
		fake_clock_advance(f->gw.clock, 30000);
		pull(f);
		assert_int_equal(next_frame(f, &payload), 0x80 | OPCODE_PING);
	}
	fake_clock_advance(f->gw.clock, 30000);
	pull(f);
	assert_int_equal(f->close_code, CLOSE_TROUBLE);
	teardown(f);
}

TEST(socket, pings_go_out_between_messages_too)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	struct bytes payload;
	stream(f, 10);
	pull(f);
	expect(f, "stream", NULL);
	fake_clock_advance(f->gw.clock, 30000);
	pull(f);
	assert_int_equal(next_frame(f, &payload), 0x80 | OPCODE_PING);
	teardown(f);
}

/* No ping passes a message that crosses a slow line for minutes; that bytes of it arrive is enough.
 */
TEST(socket, one_that_takes_bytes_lives)
{
	struct fixture *f = setup(FRAMING_V1, 0);
	stream(f, 20u << 20);
	pull(f);
	f->busy = true;
	for (unsigned i = 0; i < 20; i++) {
		acknowledge(f, 1000);
		fake_clock_advance(f->gw.clock, 30000);
		pull(f);
	}
	assert_int_equal(f->s->close_code, 0);
	for (unsigned i = 0; i < 4; i++) {
		fake_clock_advance(f->gw.clock, 30000);
		pull(f);
	}
	assert_int_equal(f->s->close_code, CLOSE_TROUBLE);
	teardown(f);
}

TEST(socket, an_answered_ping_keeps_it_open)
{
	struct fixture *f = setup(FRAMING_LEGACY, 0);
	for (unsigned i = 0; i < 20; i++) {
		fake_clock_advance(f->gw.clock, 30000);
		pull(f);
		socket_heard(f->s);
	}
	assert_int_equal(f->close_code, 0);
	teardown(f);
}

RUN(TEST_ROW(socket, fragments_become_one_message),
	TEST_ROW(socket, malformed_closes_and_nothing_more_is_taken),
	TEST_ROW(socket, what_the_spine_refuses_closes_with_policy),
	TEST_ROW(socket, over_the_limit_is_told_and_the_socket_lives),
	TEST_ROW(socket, a_request_over_the_limit_gets_an_end),
	TEST_ROW(socket, a_request_over_the_limit_gets_an_end_wherever_its_header_stands),
	TEST_ROW(socket, one_that_goes_amid_a_message_over_the_limit_leaves_nothing),
	TEST_ROW(socket, entries_come_in_order_and_large_ones_in_fragments),
	TEST_ROW(socket, a_full_carrier_is_left_alone),
	TEST_ROW(socket, what_tcp_did_not_acknowledge_goes_back),
	TEST_ROW(socket, what_was_acknowledged_does_not_come_again),
	TEST_ROW(socket, what_waits_in_the_carrier_counts_as_not_had),
	TEST_ROW(socket, an_entry_half_written_goes_back),
	TEST_ROW(socket, to_a_capped_client_a_large_output_is_a_line),
	TEST_ROW(socket, to_a_capped_client_a_large_reply_is_a_reply),
	TEST_ROW(socket, no_binary_frame_to_the_proxy),
	TEST_ROW(socket, with_buffers_an_ordinary_client_gets_a_binary_frame),
	TEST_ROW(socket, a_close_of_the_spine_comes_after_what_waits),
	TEST_ROW(socket, a_close_waits_for_what_is_still_read_from_the_file),
	TEST_ROW(socket, one_that_does_not_read_is_cut_after_its_close),
	TEST_ROW(socket, an_answered_close_says_that_all_was_read),
	TEST_ROW(socket, a_close_without_an_answer_says_nothing),
	TEST_ROW(socket, one_that_is_replaced_amid_its_close_is_cut_all_the_same),
	TEST_ROW(socket, a_replaced_one_is_mute_and_closed_later),
	TEST_ROW(socket, pings_that_nobody_answers_close_it),
	TEST_ROW(socket, pings_go_out_between_messages_too),
	TEST_ROW(socket, one_that_takes_bytes_lives),
	TEST_ROW(socket, an_answered_ping_keeps_it_open))
