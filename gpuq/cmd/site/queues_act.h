/* queues_act.h - the verbs of gpuq queues
 *
 * Touches  the server, standard output.
 * Used by  cmd_queues.c.
 */
#ifndef GPUQ_CMD_SITE_QUEUES_ACT_H
#define GPUQ_CMD_SITE_QUEUES_ACT_H

#include "gpuq/cli.h"

/* set, stop, start, open, close. A queue of that name is listed by -q. */
bool queues_is_verb(const char *word);

/* Do what the first argument, a verb, says to the queues behind it. Returns the exit code. */
int queues_act(struct cli *c);

#endif
