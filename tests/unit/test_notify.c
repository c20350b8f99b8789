/* Recipients of notifications, and that data of a job stays in its field. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/flow/notify/outbox_text.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/notify.h"
#include "libgpuq/schema.h"
#include "tests/unit/model_rig.h"
#include "gpuqd/state/record/model_apply.h"

/* ---- addresses ---- */

Test(notify, addresses)
{
	static const struct {
		const char *text;
		bool ok;
	} rows[] = {
		{ "ann", true },
		{ "ann@example.org", true },
		{ "ann.b+jobs@mail.example.org", true },
		{ "_www@example.org", true },
		{ "", false },
		{ "@example.org", false },
		{ "ann@", false },
		{ "ann@b@c", false },
		{ "-oQ/tmp/x", false },
		{ "ann@-x.org", false },
		{ "ann b@example.org", false },
		{ "ann@example.org\nBcc: bob@example.org", false },
		{ "ann@example.org,bob@example.org", false },
		{ "\"a b\"@example.org", false },
		{ "ann@example.org\x1b[m", false },
		{ "|/bin/sh", false },
		{ "\xc3\xa4nn@example.org", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;

		cr_expect_eq(gpuq_mail_check(rows[i].text, &err) == 0, rows[i].ok, "'%s'",
			     rows[i].text);
	}
}

Test(notify, urls)
{
	static const struct {
		const char *text;
		bool ok;
	} rows[] = {
		{ "https://hooks.example.org/services/T0/B1?x=y", true },
		{ "http://127.0.0.1:8080/", true },
		{ "https://[::1]/a", true },
		{ "https://h/a..b/.c/d.", true },
		{ "https://h", false },
		{ "https:///path", false },
		{ "ftp://h/", false },
		{ "HTTPS://h/", false },
		{ "https://user@h/", false },
		{ "https://h@evil/", false },
		{ "https://h/../x", false },
		{ "https://h/a/..", false },
		{ "https://h/./x", false },
		{ "https://h/a/.?x", false },
		{ "https://h/%2e%2e/x", false },
		{ "https://h/a%2Fb", false },
		{ "https://h/a\\b", false },
		{ "https://h/a b", false },
		{ "https://h/a#b", false },
		{ "https://h/a\r\nX: y", false },
		{ "https://h/\xc3\xa4", false },
		{ "https://h?x=/", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;

		cr_expect_eq(gpuq_url_check(rows[i].text, &err) == 0, rows[i].ok, "'%s'",
			     rows[i].text);
	}
}

Test(notify, prefixes_and_ends)
{
	const char *urls[] = { "https://hooks.example.org/", "http://h:1/a/" };
	const char *ends[] = { "@example.org" };
	const struct gpuq_strlist u = { urls, 2 }, e = { ends, 1 }, none = { NULL, 0 };
	char host[64];

	cr_expect(gpuq_url_allowed("https://hooks.example.org/x", &u));
	cr_expect(gpuq_url_allowed("http://h:1/a/b", &u));
	cr_expect_not(gpuq_url_allowed("http://h:1/b", &u));
	cr_expect_not(gpuq_url_allowed("http://h:11/a/", &u));
	cr_expect_not(gpuq_url_allowed("https://hooks.example.org.evil/", &u));
	cr_expect_not(gpuq_url_allowed("http://hooks.example.org/", &u));
	cr_expect_not(gpuq_url_allowed("https://hooks.example.org/", &none));
	cr_expect(gpuq_mail_allowed("ann@Example.ORG", &e));
	cr_expect_not(gpuq_mail_allowed("@example.org", &e));
	cr_expect_not(gpuq_mail_allowed("ann@evil-example.org", &e));
	gpuq_url_host("https://hooks.example.org/secret?k", host, sizeof(host));
	cr_expect_str_eq(host, "https://hooks.example.org");
}

/* ---- mail and JSON ---- */

static struct gpuq_val *message_of(struct gpuq_arena *a, const char *nasty)
{
	struct gpuq_val *msg = gpuq_map(a), *job = gpuq_map(a), *nodes = gpuq_list(a);

	gpuq_put(a, msg, "time", gpuq_int(a, T0));
	gpuq_put(a, msg, "event", gpuq_str(a, "fail"));
	gpuq_put(a, msg, "to", gpuq_str(a, "mail"));
	gpuq_put(a, msg, "address", gpuq_str(a, "ann@example.org"));
	gpuq_put(a, job, "id", gpuq_int(a, 17));
	gpuq_put(a, job, "array_index", gpuq_null(a));
	gpuq_put(a, job, "name", gpuq_str(a, nasty));
	gpuq_put(a, job, "user", gpuq_str(a, nasty));
	gpuq_put(a, job, "message", gpuq_str(a, nasty));
	gpuq_put(a, job, "state", gpuq_str(a, "FAILED"));
	gpuq_put(a, job, "exit_code", gpuq_int(a, 3));
	gpuq_put(a, job, "start_time", gpuq_int(a, T0));
	gpuq_add(a, nodes, gpuq_str(a, nasty));
	gpuq_put(a, job, "nodes", nodes);
	gpuq_put(a, msg, "job", job);
	return msg;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, what)) != NULL; p++)
		n++;
	return n;
}

Test(notify, nothing_begins_a_header)
{
	static const char *const nasty[] = {
		"x\nBcc: eve@example.com",
		"x\r\nBcc: eve@example.com",
		"x\n\nbody",
		"\x1b]0;title\a\x1b[2J",
		"\xe2\x80\xaexyz",
		"\xff\xfe",
		"\n.\n",
		"\v\f\x7f",
	};

	for (size_t i = 0; i < sizeof(nasty) / sizeof(nasty[0]); i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_buf out = GPUQ_BUF_INIT;
		const char *text, *body;

		outbox_mail(message_of(&a, nasty[i]), "0123abcd-5", "0123abcd", "gpuq@c.example",
			    &out);
		text = gpuq_buf_str(&out);
		body = strstr(text, "\n\n");
		cr_assert_not_null(body);
		cr_expect_eq(count(text, "\nBcc:"), 0, "%s", text);
		/* As many headers as without it, each of them ours. */
		for (const char *p = text; p < body; p = strchr(p, '\n') + 1)
			cr_expect(strncmp(p, "To: ", 4) == 0 || strncmp(p, "From: ", 6) == 0 ||
					  strncmp(p, "Subject: ", 9) == 0 ||
					  strncmp(p, "Date: ", 6) == 0 ||
					  strncmp(p, "Message-ID: ", 12) == 0 ||
					  strncmp(p, "Auto-Submitted: ", 16) == 0 ||
					  strncmp(p, "X-Gpuq-", 7) == 0 ||
					  strncmp(p, "MIME-", 5) == 0 ||
					  strncmp(p, "Content-", 8) == 0,
				  "%s", p);
		for (const char *p = text; *p; p++)
			cr_expect(*p == '\n' || (*p >= ' ' && *p <= '~'), "byte %d", *p);
		cr_expect_eq(count(text, "\n.\n"), 0);
		gpuq_buf_done(&out);
		gpuq_arena_done(&a);
	}
}

/* Headers hold ASCII only, in lines of 78 and words of whole characters. */
Test(notify, a_name_keeps_its_letters)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf out = GPUQ_BUF_INIT;
	const char *text, *subject;

	outbox_mail(message_of(&a, "gr\xc3\xb6\xc3\x9f"
				   "e-\xe5\x90\x8d\xe5\x89\x8d"),
		    "0123abcd-5", "0123abcd", "gpuq@c.example", &out);
	text = gpuq_buf_str(&out);
	cr_expect_not_null(strstr(text, "\nName:      gr\xc3\xb6\xc3\x9f"
					"e-\xe5\x90\x8d\xe5\x89\x8d\n"),
			   "%s", text);
	subject = strstr(text, "\nSubject: =?UTF-8?Q?=67=70=75=71");
	cr_assert_not_null(subject, "%s", text);
	cr_expect_not_null(strstr(subject, "=C3=B6"));
	for (const char *p = text; p < strstr(text, "\n\n"); p = strchr(p, '\n') + 1) {
		cr_expect_leq(strcspn(p, "\n"), 78, "%s", p);
		for (const char *q = p; *q != '\n'; q++)
			cr_expect(*q >= ' ' && *q <= '~', "byte %d", *q);
	}
	gpuq_buf_done(&out);
	gpuq_arena_done(&a);
}

Test(notify, a_mail_as_a_whole)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf out = GPUQ_BUF_INIT;

	outbox_mail(message_of(&a, "x"), "0123abcd-5", "0123abcd", "gpuq@c.example", &out);
	cr_expect_str_eq(gpuq_buf_str(&out), "To: ann@example.org\n"
					     "From: gpuq@c.example\n"
					     "Subject: gpuq: job 17 (x) FAILED, exit code 3\n"
					     "Date: Tue, 14 Nov 2023 22:13:20 +0000\n"
					     "Message-ID: <gpuq-0123abcd-5@c.example>\n"
					     "Auto-Submitted: auto-generated\n"
					     "X-Gpuq-Cluster: 0123abcd\n"
					     "MIME-Version: 1.0\n"
					     "Content-Type: text/plain; charset=utf-8\n"
					     "Content-Transfer-Encoding: 8bit\n"
					     "\n"
					     "job 17 (x) FAILED, exit code 3.\n"
					     "\n"
					     "Name:      x\n"
					     "User:      x\n"
					     "State:     FAILED\n"
					     "Exit code: 3\n"
					     "Message:   x\n"
					     "Started:   2023-11-14T22:13:20.000Z\n"
					     "Nodes:     x\n");
	gpuq_buf_done(&out);
	outbox_json(message_of(&a, "x"), "0123abcd-5", "0123abcd", &out);
	cr_expect_str_eq(
		gpuq_buf_str(&out),
		"{\"version\":1,\"id\":\"0123abcd-5\",\"cluster\":\"0123abcd\",\"time\":"
		"\"2023-11-14T22:13:20.000Z\",\"event\":\"fail\",\"cause\":null,\"job\":{\"id\":17,"
		"\"array_index\":null,\"name\":\"x\",\"user\":\"x\",\"message\":\"x\",\"state\":"
		"\"FAILED\",\"exit_code\":3,\"start_time\":\"2023-11-14T22:13:20.000Z\",\"nodes\":"
		"[\"x\"]}}");
	gpuq_buf_done(&out);
	gpuq_arena_done(&a);
}

/* ---- what the model writes down ---- */

/* "event to address index; ..." of all that waits, in order. */
static const char *waiting(const struct disk *d)
{
	static const struct gpuq_mp_limits lim = { 1 << 20, 24, 65536 };
	static char text[1000];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < d->n; i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_val *v;

		if (d->r[i].table != TABLE_OUTBOX)
			continue;
		cr_assert_eq(gpuq_mp_read(&a, &lim, d->r[i].val, d->r[i].val_len, &v, NULL), 0);
		n += (size_t)snprintf(
			text + n, sizeof(text) - n, "%s%llu %s %s %s %lld", n ? "; " : "",
			(unsigned long long)change_key_outbox_number(d->r[i].key),
			gpuq_get_str(v, "event", "?"), gpuq_get_str(v, "to", "?"),
			gpuq_get_str(v, "address", "?"),
			(long long)gpuq_get_int(gpuq_get(v, "job"), "array_index", -1));
		gpuq_arena_done(&a);
	}
	return text;
}

static void run(struct model *m, struct job_key key, uint32_t attempt, uint16_t device,
		int exit_code, enum pod_fault fault)
{
	enum event_type type;

	cr_assert_eq(place(m, key, 1, "n0", device), 0);
	cr_assert_eq(pod_event(m, EV_POD_CREATED, key, attempt, 0, T0 + 20, 0, POD_FAULT_NONE), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, key, attempt, 0, T0 + 20, 0, POD_FAULT_NONE), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, key, attempt, 0, T0 + 30, exit_code, fault), 0);
	cr_assert_eq(pod_event(m, EV_POD_GONE, key, attempt, 0, T0 + 30, 0, POD_FAULT_NONE), 0);
	cr_assert_eq(verdict(m, key, T0 + 30, &type), 0);
}

Test(notify, owner_and_site)
{
	struct model *m = fresh(1, 2);
	struct disk d = { 0 };

	m->policy.notify.hooks[0] =
		(struct policy_hook){ "pager", GPUQ_NOTIFY_FAIL | GPUQ_NOTIFY_BEGIN };
	m->policy.notify.n_hooks = 1;
	cr_assert_null(submit_text(m,
				   "command: [x]\ngpus: 1\nnotify: {on: [end], mail: a@b.c, "
				   "webhook: \"https://h/x\"}\n",
				   NULL));
	run(m, J1, 0, 0, 1, POD_FAULT_NONE);
	disk_write(&d, m);
	cr_expect_str_eq(waiting(&d), "0 begin site pager -1; 1 fail mail a@b.c -1; "
				      "2 fail webhook https://h/x -1; 3 fail site pager -1");
	model_free(m);
	disk_free(&d);
}

Test(notify, requeues_and_restarts)
{
	struct model *m = fresh(1, 2);
	struct disk d = { 0 };
	const uint64_t first[] = { 0, 1 };
	struct event ev = { .type = EV_NOTICES_DONE, .at_us = T0 };
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_null(submit_text(m,
				   "command: [x]\ngpus: 1\nmail_type: [BEGIN, END, REQUEUE]\n"
				   "mail_user: ann\n",
				   NULL));
	run(m, J1, 0, 0, -1, POD_FAULT_INFRA);
	disk_write(&d, m);
	model_free(m);
	cr_expect_str_eq(waiting(&d), "0 begin mail ann -1; 1 requeue mail ann -1");
	/* Recipients and counts survive a restart; delivered messages are deleted. */
	m = disk_load(&d);
	cr_assert_not_null(m);
	ev.notices.numbers = first;
	ev.notices.n = 2;
	cr_assert_eq(model_apply(m, &ev, &err), 0);
	run(m, J1, 1, 0, 0, POD_FAULT_NONE);
	disk_write(&d, m);
	cr_expect_str_eq(waiting(&d), "2 begin mail ann -1; 3 end mail ann -1");
	model_free(m);
	disk_free(&d);
}

Test(notify, arrays)
{
	struct model *m = fresh(1, 2);
	struct disk d = { 0 };

	cr_assert_null(submit_text(m,
				   "command: [x]\ngpus: 1\narray: 0-1\n"
				   "notify: {on: [begin, end], mail: whole}\n",
				   NULL));
	cr_assert_null(submit_text(m,
				   "command: [x]\ngpus: 1\narray: 0-1\n"
				   "notify: {on: [fail, array_tasks], mail: tasks}\n",
				   NULL));
	run(m, (struct job_key){ 1, 0 }, 0, 0, 0, POD_FAULT_NONE);
	run(m, (struct job_key){ 2, 0 }, 0, 0, 0, POD_FAULT_NONE);
	run(m, (struct job_key){ 1, 1 }, 0, 0, 2, POD_FAULT_NONE);
	run(m, (struct job_key){ 2, 1 }, 0, 0, 2, POD_FAULT_NONE);
	disk_write(&d, m);
	cr_expect_str_eq(waiting(&d), "0 begin mail whole -1; 1 fail mail whole -1; "
				      "2 fail mail tasks 1");
	model_free(m);
	disk_free(&d);
}

/* Each part of its time once, and of several that have passed the last. */
Test(notify, the_clock)
{
	struct model *m = fresh(1, 2);
	struct disk d = { 0 };
	struct event ev = { .type = EV_JOB_TIME_PASSED, .at_us = T0, .job = J1 };
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_null(submit_text(m,
				   "command: [x]\ngpus: 1\ntime: 100m\n"
				   "notify: {on: [time_50, time_80, time_90], mail: ann}\n",
				   NULL));
	cr_assert_eq(place(m, J1, 1, "n0", 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_CREATED, J1, 0, 0, T0 + 20, 0, POD_FAULT_NONE), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, 0, T0 + 20, 0, POD_FAULT_NONE), 0);
	ev.percent = 80;
	cr_assert_eq(model_apply(m, &ev, &err), 0);
	ev.percent = 90;
	cr_assert_eq(model_apply(m, &ev, &err), 0);
	disk_write(&d, m);
	cr_expect_str_eq(waiting(&d), "0 time_80 mail ann -1; 1 time_90 mail ann -1");
	model_free(m);
	disk_free(&d);
}
