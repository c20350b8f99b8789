/* Jobs as processes: what they get, how they end, what is told of them. */
#include "config.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/local_world.h"

static struct world w;
static struct wish wish;

static void setup(void)
{
	world_open(&w, NULL, 4);
}

static void teardown(void)
{
	world_done(&w);
}

TestSuite(local_pod, .init = setup, .fini = teardown, .timeout = 300);

static struct heard *run(uint32_t job, const char *command)
{
	wish_init(&wish, &w, job, command);
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name), "job %u does not end", job);
	return world_pod(&w, wish.name);
}

static char *output(const char *pod)
{
	return world_read(world_path(&w, "logs/%s.log", pod));
}

Test(local_pod, the_node_is_this_machine)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	cr_expect_str_eq(w.node, host);
	cr_expect_gt(w.cpu_milli, 0);
	cr_expect_gt(w.memory_bytes, 0);
	cr_expect_gt(strlen(w.arch), 0);
	cr_expect_eq(w.n_devices, 4);
	cr_expect(w.devices[3].healthy);
}

/* Rows of a command, and what is heard of its end. */
static const struct {
	const char *command;
	enum pod_phase phase;
	int exit_code;
	const char *reason, *message, *output;
} ends[] = {
	{ "echo hello", POD_SUCCEEDED, 0, "Completed", "", "hello\n" },
	{ "echo to-err >&2; exit 3", POD_FAILED, 3, "Error", "exit code 3", "to-err\n" },
	{ "echo a; echo b >&2; echo c > /dev/stdout; exit 255", POD_FAILED, 255, "Error",
	  "exit code 255", "a\nb\nc\n" },
	{ "kill -SEGV $$", POD_FAILED, 139, "Signal", "ended by signal 11 (SEGV)", "" },
	{ "kill -KILL $$", POD_FAILED, 137, "Signal", "ended by signal 9 (KILL)", "" },
	{ "no-such-program-at-all 2>/dev/null", POD_FAILED, 127, "Error", "exit code 127", "" },
	{ "read x && echo $x; echo end", POD_SUCCEEDED, 0, "Completed", "", "end\n" },
};

Test(local_pod, ends_are_told_as_they_were)
{
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const struct heard *h = run((uint32_t)i + 1, ends[i].command);
		char *text = output(wish.name);

		cr_expect_eq(h->phase, ends[i].phase, "%s", ends[i].command);
		cr_expect_eq(h->exit_code, ends[i].exit_code, "%s: %d", ends[i].command,
			     h->exit_code);
		cr_expect_str_eq(h->reason, ends[i].reason, "%s", ends[i].command);
		cr_expect_str_eq(h->message, ends[i].message, "%s", h->message);
		cr_expect_str_eq(text, ends[i].output, "%s: %s", ends[i].command, text);
		cr_expect_eq(h->fault, POD_FAULT_NONE);
		cr_expect_eq(h->created, ASK_OK);
		cr_expect_gt(h->start_us, 0);
		cr_expect_geq(h->end_us, h->start_us);
		free(text);
	}
}

Test(local_pod, a_program_that_is_not_there_is_127_with_a_sentence)
{
	const struct heard *h;
	char *text;

	wish_init(&wish, &w, 1, "");
	wish.argv[0] = "gpuq-no-such-program";
	wish.group.command.n = 1;
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	h = world_pod(&w, wish.name);
	text = output(wish.name);
	cr_expect_eq(h->exit_code, 127);
	cr_expect_str_eq(h->reason, "CannotStart");
	cr_expect(strstr(h->message, "gpuq-no-such-program"), "%s", h->message);
	cr_expect(strstr(text, "gpuq: cannot run 'gpuq-no-such-program'"), "%s", text);
	free(text);
}

Test(local_pod, a_missing_directory_is_1_with_a_sentence)
{
	const struct heard *h;
	char *text;

	wish_init(&wish, &w, 1, "echo never");
	wish.spec.chdir = "not/here";
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	h = world_pod(&w, wish.name);
	text = output(wish.name);
	cr_expect_eq(h->exit_code, 1);
	cr_expect(strstr(text, "cannot change to the directory"), "%s", text);
	cr_expect(strstr(text, "not/here"), "%s", text);
	cr_expect_null(strstr(text, "never"));
	free(text);
}

Test(local_pod, environment_directory_and_devices_are_the_orders)
{
	static const char want[] = "second third 1,3 1,3 PCI_BUS_ID";
	char *text;

	wish_init(
		&wish, &w, 7,
		"echo $ONE $TWO $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER; "
		"pwd; umask; ulimit -c; echo ${HOME:+home} ${USER:+user}; "
		"test \"$PWD\" = \"$(pwd -P)\" && echo pwd");
	wish.env_keys[1] = "ONE";
	wish.env_vals[1] = "first";
	wish.env_keys[2] = "CUDA_VISIBLE_DEVICES";
	wish.env_vals[2] = "7";
	wish.env_keys[3] = "PWD";
	wish.env_vals[3] = "/elsewhere";
	wish.spec.context.environ.n = 4;
	wish.own_keys[0] = "ONE";
	wish.own_vals[0] = "second";
	wish.own_keys[1] = "TWO";
	wish.own_vals[1] = "third";
	wish.order.env.n = 2;
	wish.spec.context.umask = 077;
	wish.devices[0] = 1;
	wish.devices[1] = 3;
	wish.order.n_devices = 2;
	wish.group.gpus_milli = 2000;
	mkdir(world_path(&w, "sub"), 0755);
	wish.spec.chdir = "sub";
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	text = output(wish.name);
	cr_expect(strncmp(text, want, strlen(want)) == 0, "%s", text);
	cr_expect(strstr(text, world_path(&w, "sub\n0077\n0\nhome user\npwd\n")), "%s", text);
	cr_expect_eq(world_pod(&w, wish.name)->n_devices, 2);
	cr_expect_eq(world_pod(&w, wish.name)->devices[1], 3);
	cr_expect_eq(world_pod(&w, wish.name)->gpus_milli, 2000);
	free(text);
}

Test(local_pod, a_job_without_devices_sees_none)
{
	char *text;

	run(1, "echo \"[${CUDA_VISIBLE_DEVICES-unset}][$NVIDIA_VISIBLE_DEVICES]\"");
	text = output(wish.name);
	cr_expect_str_eq(text, "[][void]\n");
	free(text);
}

Test(local_pod, nothing_of_the_daemons_is_inherited)
{
	char *text;
	int fds[2];

	cr_assert_eq(pipe(fds), 0); /* without close-on-exec */
	setenv("LEAKED_FROM_DAEMON", "yes", 1);
	run(1, "ls /proc/self/fd | wc -l; echo \"[$LEAKED_FROM_DAEMON]\"; "
	       "grep -E 'SigBlk|SigIgn' /proc/self/status | tail -c 8 | sed 's/^/ignored /'; "
	       "grep SigBlk /proc/self/status");
	text = output(wish.name);
	/* 0, 1, 2 and the directory that ls reads. */
	cr_expect(strstr(text, "4\n[]\n"), "%s", text);
	cr_expect(strstr(text, "SigBlk:\t0000000000000000"), "%s", text);
	/* The lower 28: two above are the C library's own. */
	cr_expect(strstr(text, "ignored 0000000\n"), "%s", text);
	free(text);
}

/* Rows of a script and what it prints with the arguments "a b" and "c". */
static const struct {
	const char *text, *output;
	int exit_code;
} scripts[] = {
	{ "#!/bin/sh\necho \"$1|$2|$#\"\n", "a b|c|2\n", 0 },
	{ "#! /usr/bin/env -S sh -u \r\necho $1\necho $undefined\n", NULL, 2 },
	{ "echo plain $2\n", "plain c\n", 0 },
	{ "#!/bin/sh -e\nfalse\necho never\n", "", 1 },
	{ "#!/no/such/interpreter -x\n",
	  "gpuq: cannot run the script's interpreter '/no/such/interpreter': "
	  "No such file or directory\n",
	  127 },
	{ "#!\necho bare\n", "bare\n", 0 },
};

Test(local_pod, scripts_run_by_their_first_line)
{
	static const char *args[] = { "a b", "c" };

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		const struct heard *h;
		char *text;

		wish_init(&wish, &w, (uint32_t)i + 1, "");
		wish.group.command.n = 0;
		wish.spec.script = scripts[i].text;
		wish.spec.script_bytes = strlen(scripts[i].text);
		wish.spec.script_args.items = args;
		wish.spec.script_args.n = 2;
		world_create(&w, &wish);
		cr_assert(world_wait_ended(&w, wish.name));
		h = world_pod(&w, wish.name);
		text = output(wish.name);
		cr_expect_eq(h->exit_code, scripts[i].exit_code, "%s: %d %s", scripts[i].text,
			     h->exit_code, text);
		if (scripts[i].output)
			cr_expect_str_eq(text, scripts[i].output, "%s: %s", scripts[i].text, text);
		free(text);
	}
}

Test(local_pod, files_of_the_job_are_opened_as_it_says)
{
	char *out, *error, *log;

	wish_init(&wish, &w, 42, "cat; echo error >&2");
	wish.spec.name = "train";
	wish.spec.output = "%x-%j.out";
	wish.spec.error = "%x-%4j.err";
	wish.spec.input = "in.txt";
	{
		FILE *f = fopen(world_path(&w, "in.txt"), "w");

		fputs("from a file\n", f);
		fclose(f);
	}
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	out = world_read(world_path(&w, "train-42.out"));
	error = world_read(world_path(&w, "train-0042.err"));
	log = output(wish.name);
	cr_expect_str_eq(out, "from a file\n");
	cr_expect_str_eq(error, "error\n");
	cr_expect_str_eq(log, "");
	free(out);
	free(error);
	free(log);
}

Test(local_pod, output_is_emptied_first_unless_it_is_shared_or_appended)
{
	static const struct {
		bool append;
		uint32_t attempt, n_pods;
		int64_t element;
		const char *want;
	} rows[] = {
		{ false, 0, 1, -1, "new\n" },      { true, 0, 1, -1, "old\nnew\n" },
		{ false, 1, 1, -1, "old\nnew\n" }, { false, 0, 2, -1, "old\nnew\n" },
		{ false, 0, 1, 5, "old\nnew\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		FILE *f = fopen(world_path(&w, "out"), "w");
		char *text;

		fputs("old\n", f);
		fclose(f);
		wish_init(&wish, &w, (uint32_t)i + 1, "echo new");
		wish.spec.output = "out";
		wish.spec.append = rows[i].append;
		wish.order.attempt = rows[i].attempt;
		wish.order.n_pods = rows[i].n_pods;
		wish.order.array_index = rows[i].element;
		world_create(&w, &wish);
		cr_assert(world_wait_ended(&w, wish.name));
		text = world_read(world_path(&w, "out"));
		cr_expect_str_eq(text, rows[i].want, "row %zu: %s", i, text);
		free(text);
	}
}

Test(local_pod, an_output_that_cannot_be_opened_is_1)
{
	char *log;

	wish_init(&wish, &w, 1, "echo never");
	wish.spec.output = "no/such/dir/out";
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	log = output(wish.name);
	cr_expect_eq(world_pod(&w, wish.name)->exit_code, 1);
	cr_expect(strstr(log, "cannot open the output file 'no/such/dir/out'"), "%s", log);
	free(log);
}

Test(local_pod, under_root_it_runs_as_its_submitter)
{
	char open_to_all[] = "/tmp/gpuq-owner.XXXXXX", path[128];
	struct stat st;
	char *text;

	if (getuid() != 0) {
		world_done(&w); /* a skipped test has no end of its own */
		cr_skip_test("needs root");
	}
	cr_assert_not_null(mkdtemp(open_to_all));
	chmod(open_to_all, 0777);
	/* A state directory that its user may not even pass through. */
	chmod(w.dir, 0700);
	wish_init(&wish, &w, 1, "");
	wish.group.command.n = 0;
	wish.spec.script = "#!/bin/sh\nid -u; id -g; id -G; echo to-stderr > /dev/stderr\n"
			   "touch owner\n"
			   "cat \"$0\" | head -c 9\n";
	wish.spec.script_bytes = strlen(wish.spec.script);
	wish.spec.context.cwd = open_to_all;
	wish.order.uid = 65534;
	wish.order.gid = 65534;
	wish.order.user = "nobody";
	world_create(&w, &wish);
	cr_expect(world_wait_ended(&w, wish.name));
	text = output(wish.name);
	cr_expect_str_eq(text, "65534\n65534\n65534\nto-stderr\n#!/bin/sh", "%s", text);
	free(text);
	snprintf(path, sizeof(path), "%s/owner", open_to_all);
	cr_expect_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_uid, 65534u);
	unlink(path);
	rmdir(open_to_all);
}

Test(local_pod, what_can_never_run_is_refused)
{
	const struct heard *h;

	wish_init(&wish, &w, 1, "true");
	wish.group.command.n = 0;
	wish.group.image = "registry.example/image";
	world_create(&w, &wish);
	cr_assert(world_wait_created(&w, wish.name));
	h = world_pod(&w, wish.name);
	cr_expect_eq(h->created, ASK_REFUSED);
	cr_expect(strstr(h->created_message, "command"), "%s", h->created_message);

	wish_init(&wish, &w, 2, "true");
	wish.order.node = "another-machine";
	world_create(&w, &wish);
	cr_assert(world_wait_created(&w, wish.name));
	cr_expect_eq(world_pod(&w, wish.name)->created, ASK_REFUSED);

	wish_init(&wish, &w, 3, "true");
	wish.order.name = "../../etc/passwd";
	world_create(&w, &wish);
	cr_assert(world_wait_created(&w, wish.order.name));
	cr_expect_eq(world_pod(&w, wish.order.name)->created, ASK_REFUSED);

	if (getuid() != 0) {
		wish_init(&wish, &w, 4, "true");
		wish.order.uid = (uint32_t)getuid() + 1;
		world_create(&w, &wish);
		cr_assert(world_wait_created(&w, wish.name));
		cr_expect_eq(world_pod(&w, wish.name)->created, ASK_REFUSED);
	}
}

Test(local_pod, the_same_order_twice_is_one_process)
{
	char *text;

	wish_init(&wish, &w, 1, "echo x >> once");
	world_create(&w, &wish);
	world_create(&w, &wish); /* while the first is under way: one answer serves both */
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(world_pod(&w, wish.name)->created, ASK_OK);
	world_pod(&w, wish.name)->n_created = 0;
	world_create(&w, &wish);
	cr_assert(world_wait_created(&w, wish.name));
	cr_expect_eq(world_pod(&w, wish.name)->created, ASK_OK);

	world_pod(&w, wish.name)->n_created = 0;
	wish.order.token = "ffffffffffffffffffffffffffffffff";
	world_create(&w, &wish);
	cr_assert(world_wait_created(&w, wish.name));
	cr_expect_eq(world_pod(&w, wish.name)->created, ASK_CONFLICT);
	text = world_read(world_path(&w, "once"));
	cr_expect_str_eq(text, "x\n", "%s", text);
	free(text);
}

Test(local_pod, pods_of_a_gang_run_side_by_side)
{
	char names[3][64], *text;

	for (uint32_t i = 0; i < 3; i++) {
		/* Each waits for all: one after the other they would never end. */
		wish_init(&wish, &w, 9,
			  "touch here.$RANK; while [ $(ls here.* | wc -l) -lt 3 ]; do sleep 0.05; "
			  "done; echo done");
		snprintf(wish.name, sizeof(wish.name), "gpuq-00c0ffee-9-0-%u", i);
		snprintf(names[i], sizeof(names[i]), "%s", wish.name);
		wish.order.index = wish.order.group_index = i;
		wish.order.n_pods = 3;
		wish.own_keys[0] = "RANK";
		wish.own_vals[0] = (const char *[]){ "0", "1", "2" }[i];
		wish.order.env.n = 1;
		wish.spec.output = "gang-%j-%n";
		world_create(&w, &wish);
	}
	for (int i = 0; i < 3; i++) {
		cr_assert(world_wait_ended(&w, names[i]));
		cr_expect_eq(world_pod(&w, names[i])->phase, POD_SUCCEEDED);
		text = world_read(world_path(&w, "gang-9-%d", i));
		cr_expect_str_eq(text, "done\n");
		free(text);
	}
}

Test(local_pod, more_memory_than_asked_is_told_from_failure)
{
	const struct heard *h;

	if (getuid() != 0 || (access("/sys/fs/cgroup/memory/memory.limit_in_bytes", W_OK) != 0 &&
			      access("/sys/fs/cgroup/cgroup.subtree_control", W_OK) != 0)) {
		world_done(&w);
		cr_skip_test("no memory limit can be set here");
	}
	wish_init(&wish, &w, 1, "x=$(head -c 200000000 /dev/zero | tr '\\000' a); echo ${#x}");
	wish.group.memory_bytes = 32 << 20;
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	h = world_pod(&w, wish.name);
	cr_expect_eq(h->fault, POD_FAULT_OOM, "%s", h->message);
	cr_expect_eq(h->exit_code, 137);
	cr_expect_str_eq(h->reason, "OOMKilled");
}
