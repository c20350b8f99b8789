/* Jobs that are told to leave, daemons that restart, shepherds that are killed. */
#include "config.h"

#include <criterion/criterion.h>
#include <dirent.h>
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
	world_open(&w, NULL, 0);
}

static void teardown(void)
{
	world_done(&w);
}

TestSuite(local_life, .init = setup, .fini = teardown, .timeout = 300);

/* Start a job and wait until it has written the file `ready`. */
static struct heard *begin(const char *command)
{
	wish_init(&wish, &w, 1, command);
	world_create(&w, &wish);
	cr_assert(world_wait_running(&w, wish.name));
	cr_assert(world_wait_file(&w, world_path(&w, "ready")));
	return world_pod(&w, wish.name);
}

static void delete_pod(int64_t grace_us)
{
	const struct pod_ref ref = { .name = wish.name, .token = wish.token };

	w.c->ops->pod_delete(w.c, &ref, grace_us);
}

static bool is_empty(struct world *world, void *arg)
{
	(void)world;
	return world_processes(arg) == 0;
}

static void expect_no_process_left(const struct heard *h)
{
	cr_expect(world_wait(&w, is_empty, (void *)h->uid), "processes are left");
}

Test(local_life, told_to_leave_it_may_end_in_its_own_way)
{
	struct heard *h = begin("trap 'echo saved > saved; exit 7' TERM; echo > ready; "
				"while :; do sleep 0.05; done");
	char *text;

	delete_pod(30000000);
	cr_assert(world_wait_ended(&w, wish.name));
	text = world_read(world_path(&w, "saved"));
	cr_expect_str_eq(text, "saved\n");
	cr_expect_eq(h->phase, POD_FAILED);
	cr_expect_eq(h->exit_code, 7);
	cr_expect_eq(h->deleted, ASK_OK);
	cr_expect(h->leaving);
	cr_expect_not(h->gone, "its end is kept until the ledger has it");
	expect_no_process_left(h);
	free(text);
}

Test(local_life, a_shells_end_leaves_its_program_the_grace)
{
	/* sh dies of TERM at once; the program below it still saves its work. */
	struct heard *h = begin("sh -c 'trap \"sleep 0.3; echo saved > saved; exit\" TERM; "
				"echo > ready; while :; do sleep 0.05; done'; echo not reached");
	char *text;

	delete_pod(30000000);
	cr_assert(world_wait_ended(&w, wish.name));
	text = world_read(world_path(&w, "saved"));
	cr_expect_str_eq(text, "saved\n");
	cr_expect_eq(h->exit_code, 143);
	free(text);
}

Test(local_life, after_the_grace_it_is_killed_with_all_below_it)
{
	struct heard *h = begin("trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 1; "
				"done' & echo > ready; while :; do sleep 1; done");

	delete_pod(200000);
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(h->exit_code, 137);
	cr_expect_str_eq(h->reason, "Signal");
	expect_no_process_left(h);
}

Test(local_life, a_second_request_can_only_shorten_the_grace)
{
	struct heard *h = begin("trap '' TERM; echo > ready; while :; do sleep 1; done");

	delete_pod(INT64_C(3600) * 1000000);
	delete_pod(INT64_C(7200) * 1000000);
	delete_pod(0);
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(h->exit_code, 137);
}

Test(local_life, a_stopped_job_can_leave)
{
	struct heard *h = begin("echo > ready; kill -STOP $$; echo woken");

	delete_pod(30000000);
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(h->exit_code, 143);
}

Test(local_life, a_jobs_end_is_the_end_of_what_it_left_behind)
{
	struct heard *h =
		begin("sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & "
		      "sleep 1000' &) ; echo > ready; while ! test -e go; do sleep 0.05; done; "
		      "exit 4");

	fclose(fopen(world_path(&w, "go"), "w"));
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(h->exit_code, 4);
	cr_expect_eq(world_processes(h->uid), 0, "told as ended while processes ran");
}

Test(local_life, one_that_cannot_begin_waits_and_may_leave)
{
	const size_t n = strlen(w.shepherd);
	struct heard *h;
	struct stat st;

	strcat(w.shepherd, ".missing");
	world_restart(&w);
	wish_init(&wish, &w, 1, "echo ran > ran");
	world_create(&w, &wish);
	cr_assert(world_wait_created(&w, wish.name));
	h = world_pod(&w, wish.name);
	cr_expect_eq(h->created, ASK_RETRY);
	cr_expect_eq(h->phase, POD_PENDING);
	cr_expect(strstr(h->message, "shepherd"), "%s", h->message);
	delete_pod(0);
	w.shepherd[n] = '\0';
	world_restart(&w); /* now there is one: it must not start what was told to leave */
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_str_eq(h->reason, "Deleted");
	cr_expect_eq(h->start_us, 0);
	cr_expect_neq(stat(world_path(&w, "ran"), &st), 0);
}

Test(local_life, a_restarted_daemon_finds_it_running_and_hears_its_end)
{
	struct heard before =
		*begin("echo > ready; while ! test -e go; do sleep 0.05; done; exit 5");
	struct heard *h = world_pod(&w, wish.name);

	h->phase = POD_PENDING;
	world_restart(&w);
	cr_expect_eq(h->phase, POD_RUNNING);
	cr_expect_eq(h->start_us, before.start_us);
	cr_expect_str_eq(h->uid, before.uid);
	cr_expect_str_eq(h->token, wish.token);
	fclose(fopen(world_path(&w, "go"), "w"));
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(h->exit_code, 5);
	h->phase = POD_PENDING;
	world_restart(&w);
	cr_expect_eq(h->phase, POD_FAILED, "an end is told again until it is forgotten");
	cr_expect_eq(h->exit_code, 5);
}

Test(local_life, what_ended_while_nobody_listened_is_heard)
{
	struct heard *h = begin("echo > ready; while ! test -e go; do sleep 0.02; done; exit 6");

	world_close(&w);
	fclose(fopen(world_path(&w, "go"), "w"));
	for (int i = 0; i < 3000 && world_processes(h->uid) > 0; i++)
		usleep(10000);
	{
		struct world again;
		const char *pod = wish.name;

		world_open(&again, w.dir, 0);
		cr_assert(world_wait_ended(&again, pod));
		cr_expect_eq(world_pod(&again, pod)->exit_code, 6);
		world_close(&again);
	}
	w.lists = 0;
	world_open(&w, w.dir, 0);
}

Test(local_life, a_restarted_daemon_can_tell_it_to_leave)
{
	struct heard *h = begin("echo > ready; sleep 1000");

	world_restart(&w);
	delete_pod(30000000);
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(h->exit_code, 143);
	h->leaving = false;
	world_restart(&w);
	cr_expect(h->leaving, "that it was told to leave is remembered");
}

Test(local_life, one_whose_order_to_leave_was_written_but_not_told_leaves)
{
	struct heard *h = begin("echo > ready; sleep 1000");
	FILE *f = fopen(world_path(&w, "local/%s/leave", wish.name), "we");

	cr_assert(f);
	fputs("30000000", f);
	fclose(f);
	world_restart(&w);
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(h->exit_code, 143);
}

/* The process that holds the pod's lock, as /proc/locks does not tell for open file
 * descriptions: the one with POD's directory open, other than us. */
static pid_t find_shepherd(const char *pod)
{
	const char *want = world_path(&w, "local/%s/lock", pod);
	DIR *proc = opendir("/proc");
	struct dirent *e;
	pid_t found = 0;

	while ((e = readdir(proc))) {
		char path[300], link[512];
		pid_t pid = atoi(e->d_name);

		for (int fd = 3; pid > 0 && pid != getpid() && fd < 20; fd++) {
			ssize_t n;

			snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
			n = readlink(path, link, sizeof(link) - 1);
			link[n > 0 ? n : 0] = '\0';
			if (strcmp(link, want) == 0)
				found = pid;
		}
	}
	closedir(proc);
	return found;
}

Test(local_life, a_killed_shepherd_takes_all_with_it_and_is_told_as_infrastructure)
{
	struct heard *h = begin("(setsid sh -c 'while :; do sleep 1; done' &); sleep 1000 & "
				"echo x >> count; echo > ready; sleep 1000");
	pid_t shepherd = find_shepherd(wish.name);
	char *text;

	cr_assert_gt(shepherd, 0);
	kill(shepherd, SIGKILL);
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(h->phase, POD_FAILED);
	cr_expect_eq(h->fault, POD_FAULT_INFRA, "%s", h->message);
	expect_no_process_left(h);
	text = world_read(world_path(&w, "count"));
	cr_expect_str_eq(text, "x\n", "started again: %s", text);
	free(text);
}

Test(local_life, a_shepherd_killed_while_nobody_listened_is_found_dead)
{
	struct heard *h = begin("echo x >> count; echo > ready; (setsid sleep 1000 &); sleep 1000");
	pid_t shepherd = find_shepherd(wish.name);
	char *text;

	world_close(&w);
	kill(shepherd, SIGKILL);
	world_open(&w, w.dir, 0);
	cr_assert(world_wait_ended(&w, wish.name));
	h = world_pod(&w, wish.name);
	cr_expect_eq(h->fault, POD_FAULT_INFRA);
	expect_no_process_left(h);
	text = world_read(world_path(&w, "count"));
	cr_expect_str_eq(text, "x\n");
	free(text);
}

Test(local_life, a_shepherd_told_to_stop_stops_its_job)
{
	struct heard *h = begin("trap 'echo saved > saved; exit 0' TERM; echo > ready; "
				"while :; do sleep 0.05; done");
	char *text;

	kill(find_shepherd(wish.name), SIGTERM);
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(h->fault, POD_FAULT_INFRA);
	text = world_read(world_path(&w, "saved"));
	cr_expect_str_eq(text, "saved\n");
	free(text);
}

Test(local_life, another_boot_means_it_is_over)
{
	struct heard *h = begin("echo x >> count; echo > ready; while :; do sleep 1; done");
	char *path = world_path(&w, "local/%s/state", wish.name), *text;
	FILE *f;

	world_close(&w);
	kill(find_shepherd(wish.name), SIGKILL);
	f = fopen(path, "w");
	fprintf(f, "\nstarting boot=00000000-0000-0000-0000-000000000000 at=1\n"
		   "\nstarted pid=1 ticks=0 at=2\n"
		   "\nended how=exi");
	fclose(f);
	world_open(&w, w.dir, 0);
	cr_assert(world_wait_ended(&w, wish.name));
	h = world_pod(&w, wish.name);
	cr_expect_eq(h->fault, POD_FAULT_INFRA);
	cr_expect(strstr(h->message, "restarted"), "%s", h->message);
	text = world_read(world_path(&w, "count"));
	cr_expect_str_eq(text, "x\n");
	free(text);
}

Test(local_life, signals_reach_the_program_and_spare_the_shell_of_a_script)
{
	const struct pod_ref ref = { .name = wish.name, .token = wish.token };
	char *text;

	wish_init(&wish, &w, 1, "");
	wish.group.command.n = 0;
	wish.spec.script = "#!/bin/sh\nsh -c 'trap \"echo got > got; exit 0\" USR1; echo > ready; "
			   "while :; do sleep 0.05; done'\necho shell lives > lives\n";
	wish.spec.script_bytes = strlen(wish.spec.script);
	world_create(&w, &wish);
	cr_assert(world_wait_running(&w, wish.name));
	cr_assert(world_wait_file(&w, world_path(&w, "ready")));
	cr_expect_eq(w.c->ops->pod_signal(w.c, &ref, SIGUSR1, NULL), 0);
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(world_pod(&w, wish.name)->phase, POD_SUCCEEDED);
	text = world_read(world_path(&w, "got"));
	cr_expect_str_eq(text, "got\n");
	free(text);
	text = world_read(world_path(&w, "lives"));
	cr_expect_str_eq(text, "shell lives\n");
	free(text);
	cr_expect_lt(w.c->ops->pod_signal(w.c, &ref, SIGUSR1, NULL), 0, "it has ended");
}

Test(local_life, a_checkpoint_signal_is_not_cut_short_by_term)
{
	const struct pod_ref ref = { .name = wish.name, .token = wish.token };
	struct heard *h = begin("trap 'sleep 0.3; echo saved > saved; exit 9' USR1; echo > ready; "
				"while :; do sleep 0.05; done");
	char *text;

	cr_expect_eq(w.c->ops->pod_signal(w.c, &ref, SIGUSR1, NULL), 0);
	delete_pod(30000000);
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(h->exit_code, 9);
	text = world_read(world_path(&w, "saved"));
	cr_expect_str_eq(text, "saved\n");
	free(text);
}

Test(local_life, a_job_is_warned_before_its_time_limit)
{
	wish_init(&wish, &w, 1, "trap 'exit 8' USR2; while :; do sleep 0.05; done");
	wish.spec.signal = SIGUSR2;
	wish.spec.signal_lead_us = INT64_C(3600) * 1000000;
	wish.order.time_limit_us = INT64_C(3600) * 1000000 + 200000;
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(world_pod(&w, wish.name)->exit_code, 8);
}

Test(local_life, the_safety_net_ends_what_nobody_ended)
{
	struct heard *h;

	wish_init(&wish, &w, 1, "sleep 1000");
	wish.order.time_limit_us = -INT64_C(59) * 1000000; /* the net hangs 60 s above */
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	h = world_pod(&w, wish.name);
	cr_expect_eq(h->fault, POD_FAULT_DEADLINE);
	cr_expect_eq(h->exit_code, 143);
}

Test(local_life, forgotten_it_is_gone_and_its_output_stays)
{
	struct pod_ref ref = { .name = wish.name };
	struct heard *h;
	struct stat st;
	char *text;

	wish_init(&wish, &w, 1, "echo kept");
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	h = world_pod(&w, wish.name);
	ref.uid = "another";
	w.c->ops->pod_forget(w.c, &ref);
	ref.uid = h->uid;
	w.c->ops->pod_forget(w.c, &ref);
	cr_assert(world_wait_gone(&w, wish.name));
	cr_expect_neq(stat(world_path(&w, "local/%s", wish.name), &st), 0);
	text = world_read(world_path(&w, "logs/%s.log", wish.name));
	cr_expect_str_eq(text, "kept\n");
	free(text);
	h->gone = false;
	ref.token = wish.token;
	w.c->ops->pod_forget(w.c, &ref); /* again, as after a crash: told again */
	cr_assert(world_wait_gone(&w, wish.name));
}

Test(local_life, forgotten_while_it_runs_it_ends)
{
	const struct pod_ref ref = { .name = wish.name, .token = wish.token };
	struct heard *h = begin("trap '' TERM; echo > ready; while :; do sleep 1; done");

	w.c->ops->pod_forget(w.c, &ref);
	cr_assert(world_wait_gone(&w, wish.name));
	expect_no_process_left(h);
}

static bool was_deleted(struct world *world, void *arg)
{
	return world_pod(world, arg)->n_deleted > 0;
}

Test(local_life, deleting_what_is_not_there_or_another_says_so)
{
	const struct pod_ref none = { .name = "gpuq-00c0ffee-99-0-0" };
	const struct pod_ref other = { .name = wish.name,
				       .uid = "00000000000000000000000000000000" };
	struct heard *h;

	w.c->ops->pod_delete(w.c, &none, 0);
	cr_assert(world_wait(&w, was_deleted, (void *)none.name));
	cr_expect_eq(world_pod(&w, none.name)->deleted, ASK_OK);
	h = begin("echo > ready; while ! test -e go; do sleep 0.05; done");
	w.c->ops->pod_delete(w.c, &other, 0);
	cr_assert(world_wait(&w, was_deleted, wish.name));
	cr_expect_eq(h->deleted, ASK_CONFLICT);
	fclose(fopen(world_path(&w, "go"), "w"));
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(h->phase, POD_SUCCEEDED, "the other was left alone");
	delete_pod(0);
	cr_assert(world_wait_gone(&w, wish.name));
}

Test(local_life, what_a_crash_left_half_made_is_swept)
{
	struct stat st;
	FILE *f;

	world_close(&w);
	mkdir(world_path(&w, "local/.new-gpuq-00c0ffee-5-0-0"), 0711);
	mkdir(world_path(&w, "local/.gone-gpuq-00c0ffee-6-0-0"), 0711);
	mkdir(world_path(&w, "local/gpuq-00c0ffee-7-0-0"), 0711);
	f = fopen(world_path(&w, "local/gpuq-00c0ffee-7-0-0/order"), "w");
	fwrite("gpuq-order=1\0pod=gpuq-00c0ff", 1, 28, f); /* cut by a power failure */
	fclose(f);
	world_open(&w, w.dir, 0);
	cr_expect_eq(w.n_pods, 0);
	cr_expect_neq(stat(world_path(&w, "local/.new-gpuq-00c0ffee-5-0-0"), &st), 0);
	cr_expect_neq(stat(world_path(&w, "local/.gone-gpuq-00c0ffee-6-0-0"), &st), 0);
	cr_expect_neq(stat(world_path(&w, "local/gpuq-00c0ffee-7-0-0"), &st), 0);
	wish_init(&wish, &w, 7, "true");
	world_create(&w, &wish);
	cr_assert(world_wait_ended(&w, wish.name));
	cr_expect_eq(world_pod(&w, wish.name)->phase, POD_SUCCEEDED);
}
