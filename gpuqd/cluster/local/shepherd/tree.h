/* tree.h - a directory of a job is removed, whatever the job made in it
 *
 * Owns     nothing.
 * Touches  files, never through a link.
 * Used by  shepherd_run.c, local_files.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_TREE_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_TREE_H

/* Remove DIRFD/name and all that is in it; what is not there is fine. Returns 0 or -1 with errno. */
int tree_remove(int dirfd, const char *name);

#endif
