/* local_world.h - a local cluster in a scratch directory, and an ear that keeps what
 * it hears
 *
 * Owns     the directory (removed by world_done, after everything in it was ended).
 * Used by  the tests of cluster/local and their driver.
 */
#ifndef TESTS_UNIT_LOCAL_WORLD_H
#define TESTS_UNIT_LOCAL_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"

#define WORLD_PODS_MAX 64
#define WORLD_HANG_S 60 /* a wait that takes longer has hung: the test fails */

/* The last report of a pod. */
struct heard {
	char name[64], uid[40], token[40], reason[40], message[300];
	enum pod_phase phase;
	enum pod_fault fault;
	bool leaving, gone;
	int exit_code;
	int64_t start_us, end_us, gpus_milli;
	int n_seen, n_created, n_deleted;
	enum ask_outcome created, deleted;
	char created_message[300];
	int devices[16];
	size_t n_devices;
};

struct world {
	char dir[128], shepherd[4096];
	struct loop *loop;
	struct clock clock; /* of the loop that was closed last */
	struct loop_timer *beat;
	struct cluster *c;
	struct heard pods[WORLD_PODS_MAX];
	int n_pods;
	int lists;
	char node[256], arch[32], node_note[200];
	int64_t cpu_milli, memory_bytes;
	struct device_fact devices[16];
	uint8_t links[16 * 16];
	bool has_links;
	char uuids[16][96], products[16][96];
	size_t n_devices;
	int64_t gpus;
	bool hung;
	bool (*until)(struct world *w, void *arg);
	void *until_arg;
	void (*on_pod)(struct world *w, struct heard *h); /* may be NULL */
};

/* A cluster in DIR, or in a new scratch directory when dir is NULL; program is the
 * path of local_shepherd beside this test when NULL. */
void world_open(struct world *w, const char *dir, int64_t gpus);
/* Let the cluster go and make a new one, as a restarted daemon does. */
void world_restart(struct world *w);
void world_close(struct world *w); /* the cluster alone: jobs go on */
void world_done(struct world *w); /* everything */

/* Turn the loop until fn(arg) holds. False when it hung. */
bool world_wait(struct world *w, bool (*fn)(struct world *w, void *arg), void *arg);
bool world_wait_ended(struct world *w, const char *pod);
bool world_wait_running(struct world *w, const char *pod);
bool world_wait_created(struct world *w, const char *pod);
bool world_wait_gone(struct world *w, const char *pod);
bool world_wait_file(struct world *w, const char *path); /* until it has a byte */

struct heard *world_pod(struct world *w, const char *name); /* made when new */

/* An order that can be changed before it is given. Strings are the caller's. */
struct wish {
	struct pod_order order;
	struct gpuq_spec spec;
	struct gpuq_group group;
	const char *argv[16];
	const char *env_keys[8], *env_vals[8];
	const char *own_keys[8], *own_vals[8];
	int devices[8];
	char name[64], token[40];
};

/* A job of one pod: `sh -c command` in the scratch directory, as the calling user. */
void wish_init(struct wish *wish, struct world *w, uint32_t job, const char *command);
void world_create(struct world *w, const struct wish *wish);

/* The whole content of a file, NUL-terminated; "" when it is not there. Freed by the
 * caller. */
char *world_read(const char *path);
char *world_path(const struct world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* below DIR; a ring of eight buffers */

/* Pids of processes whose environment holds GPUQ_POD_UID=uid; how many. */
int world_processes(const char *uid);

#endif
