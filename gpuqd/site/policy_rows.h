/* policy_rows.h - what the kinds of keys in policy_queue.h and policy_sched.h are in a struct
 *
 * Owns     the C types of the kinds. Touches nothing.
 * Used by  policy_queue.h, policy_sched.h.
 *
 * kind     in a file                                in a scenario
 * FACTOR   a number >= 0                            the same; both in thousandths
 * INT      a whole number                           a priority, in thousandths as all of a case
 * WORD     one of some words                        the same
 * FLAG     true or false                            the same
 * SPAN     a duration; kept in microseconds         a number of the case's unit
 * COUNT    a whole number                           the same; -1 is unlimited
 * LIMIT    a whole number or `unlimited`            the same; -1 is unlimited
 * DEVICES  devices or `unlimited`, in thousandths   the same; -1 is unlimited
 */
#ifndef GPUQD_SITE_POLICY_ROWS_H
#define GPUQD_SITE_POLICY_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_TYPE_FACTOR int64_t
#define POLICY_TYPE_INT int64_t
#define POLICY_TYPE_WORD int
#define POLICY_TYPE_FLAG bool
#define POLICY_TYPE_SPAN int64_t
#define POLICY_TYPE_COUNT int64_t
#define POLICY_TYPE_LIMIT int64_t
#define POLICY_TYPE_DEVICES int64_t

#define POLICY_MEMBER(kind, member, ...) POLICY_TYPE_##kind member;

#endif
