/* elastic.h - gangs that lost pods get them back; elastic jobs take what is idle
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  sched.c.
 */
#ifndef GPUQD_SCHED_ELASTIC_H
#define GPUQD_SCHED_ELASTIC_H

#include "gpuqd/sched/quota/cycle.h"

/* Gangs that lost pods get them back, or leave; elastic jobs take what is idle. */
void elastic_serve(struct cycle *c);

#endif
