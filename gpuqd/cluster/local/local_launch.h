/* local_launch.h - shepherds and other processes of ours, started
 *
 * Owns     the launches under way.
 * Touches  posix_spawn.
 * Used by  local.c, local_node.c, local_own.c, local_pod.c, local_use.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_LOCAL_LAUNCH_H
#define GPUQD_CLUSTER_LOCAL_LOCAL_LAUNCH_H

#include "gpuqd/cluster/local/local_int.h"

void local_launch(struct local *l, struct local_pod *p);
void local_launch_forget(struct local *l, struct local_pod *p); /* p goes away */
void local_launch_free_all(struct local *l);
/* A line that a new process of ours prints; argv[0] is the program. -1 and errno. */
pid_t local_spawn(const struct local *l, const char *const *argv, int *out_fd);
/* The same with a connection on its standard input, for both ways. */
pid_t local_spawn_pair(const struct local *l, const char *const *argv, int *fd);

#endif
