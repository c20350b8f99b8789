/* trace_peers.h - textbook policies, to compare with
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  trace.c.
 */
#ifndef GPUQD_SIM_TRACE_TRACE_PEERS_H
#define GPUQD_SIM_TRACE_TRACE_PEERS_H

#include "gpuqd/sim/trace/trace_log.h"

enum trace_peer { TRACE_FIFO, TRACE_EASY, TRACE_FAIR_EASY };

extern const struct trace_policy trace_peers; /* variant: enum trace_peer */

#endif
