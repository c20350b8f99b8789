/* last_words.h - the line by which users of Slurm see in a script's output that it was ended, and why
 *
 * Owns     nothing.
 * Touches  the file that a script's standard error goes to, by a descriptor that the script's user opened.
 * Used by  shepherd_child.c (sends it), shepherd_run.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_LAST_WORDS_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_LAST_WORDS_H

#include "gpuqd/cluster/local/shepherd/order.h"

#define LAST_WORDS_BYTES 400

/* Send a descriptor with n bytes as one packet; without it if fd is no regular file. */
void last_words_send(int socket, const void *bytes, size_t n, int fd);

/* Receive a packet as recv() does, without waiting. *fd: the descriptor that came with it, if it is a regular file
 * that is open for appending; the one that it had before is closed. */
long last_words_receive(int socket, void *bytes, size_t n, int *fd);

/* Print the line for a script with Slurm's variables, of its first pod; why: "TIME LIMIT" ..., "" = it was
 * cancelled. Returns its length, 0 = none is due. */
size_t last_words(const struct order *o, const char *why, char out[LAST_WORDS_BYTES]);

#endif
