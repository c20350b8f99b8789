/* A daemon in miniature: makes N pods in a local cluster, writes down each that ended,
 * then forgets it, and exits 0 when all are through. May be killed at any instruction
 * and started again:
 *   local_driver DIR N       each job appends a line "INDEX" to DIR/ran
 *   local_driver --list      names of the failpoints that are compiled in
 * DIR/ledger holds "INDEX PHASE FAULT" lines; its lines are the durable decision. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/base/failpoint.h"
#include "tests/unit/local_world.h"

#define PODS_MAX 60

static struct world w;
static bool done[PODS_MAX];
static int n_pods, ledger_fd;

static int index_of(const char *pod)
{
	int job = -1;

	sscanf(pod, "gpuq-00c0ffee-%d-0-0", &job);
	return job - 1;
}

static void forget(const struct heard *h)
{
	const struct pod_ref ref = { .name = h->name, .token = h->token };

	w.c->ops->pod_forget(w.c, &ref);
}

static void on_pod(struct world *world, struct heard *h)
{
	const int i = index_of(h->name);

	(void)world;
	if (h->gone || (h->phase != POD_SUCCEEDED && h->phase != POD_FAILED))
		return;
	if (!done[i]) {
		dprintf(ledger_fd, "%d %d %d\n", i, (int)h->phase, (int)h->fault);
		done[i] = true;
	}
	forget(h);
}

static bool all_gone(struct world *world, void *arg)
{
	(void)arg;
	for (int i = 0; i < n_pods; i++)
		if (!done[i])
			return false;
	for (int i = 0; i < world->n_pods; i++)
		if (!world->pods[i].gone)
			return false;
	return true;
}

static void read_ledger(const char *path)
{
	FILE *f = fopen(path, "r");
	int i, phase, fault;

	while (f && fscanf(f, "%d %d %d", &i, &phase, &fault) == 3)
		if (i >= 0 && i < PODS_MAX)
			done[i] = true;
	if (f)
		fclose(f);
}

static void print_name(void *arg, const char *name)
{
	(void)arg;
	puts(name);
}

int main(int argc, char **argv)
{
	char command[PODS_MAX][64], path[300];
	static struct wish wish;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		failpoint_each(print_name, NULL);
		return 0;
	}
	if (argc != 3)
		return 2;
	n_pods = atoi(argv[2]);
	snprintf(path, sizeof(path), "%s/ledger", argv[1]);
	read_ledger(path);
	ledger_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	world_open(&w, argv[1], 0);
	w.on_pod = on_pod;
	for (int i = 0; i < w.n_pods; i++)
		on_pod(&w, &w.pods[i]); /* what the first list told */
	for (int i = 0; i < n_pods; i++) {
		if (done[i])
			continue;
		snprintf(command[i], sizeof(command[i]), "echo %d >> ran", i);
		wish_init(&wish, &w, (uint32_t)i + 1, command[i]);
		world_create(&w, &wish);
	}
	if (!world_wait(&w, all_gone, NULL))
		return 1;
	world_close(&w);
	return 0;
}
