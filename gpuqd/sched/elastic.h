/* elastic.h - replacements for gangs that lost pods; growth of elastic jobs
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  sched.c. */
#ifndef GPUQD_SCHED_ELASTIC_H
#define GPUQD_SCHED_ELASTIC_H

#include "gpuqd/sched/quota/cycle.h"

/* Replace lost pods of gangs, or preempt the gangs; grow elastic jobs into idle capacity. */
void elastic_serve(struct cycle *c);

#endif
