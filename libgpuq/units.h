/* units.h - durations, sizes, quantities and instants as people write them
 *
 * Owns     nothing. Touches memory only; times are UTC, no locale.
 * Used by  schemas, the CLI, views, manifests.
 *
 * Inside gpuq: time is int64 microseconds (instants since 1970 UTC), memory int64
 * bytes, cpu int64 milli-cores, gpu int64 milli-devices. Parsers leave their
 * output alone on failure and answer GPUQ_EINVAL (no such form) or GPUQ_ERANGE.
 */
#ifndef LIBGPUQ_UNITS_H
#define LIBGPUQ_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "libgpuq/err.h"

#define GPUQ_US_PER_S INT64_C(1000000)
#define GPUQ_UNLIMITED INT64_MAX /* a limit or a duration that is none */

/* "45s" "90m" "12h" "1d12h" "7d" "250ms" (largest unit first); Slurm's "M", "M:S",
 * "H:M:S", "D-H", "D-H:M", "D-H:M:S"; a plain number is minutes; "unlimited" and
 * "infinite" give GPUQ_UNLIMITED. Never negative. */
int gpuq_duration_parse(const char *text, int64_t *us, struct gpuq_err *err);

/* The shortest exact form that gpuq_duration_parse reads back: "1d12h", "90s". */
void gpuq_duration_print(int64_t us, char *out, size_t room);

/* As squeue prints times: "1-02:03:04", "12:05", "UNLIMITED". */
void gpuq_duration_clock(int64_t us, char *out, size_t room);

/* Bytes: "512Gi" "10Gi" "100M" "1.5Gi" "1e9" "1073741824" (Kubernetes quantities,
 * rounded up to a byte). A bare K or k is 1000; "512G" of Slurm's --mem is read by
 * gpuq_slurm_mem_parse instead (1024-based, plain number = MiB). */
int gpuq_bytes_parse(const char *text, int64_t *bytes, struct gpuq_err *err);
int gpuq_slurm_mem_parse(const char *text, int64_t *bytes, struct gpuq_err *err);
void gpuq_bytes_print(int64_t bytes, char *out, size_t room); /* "512Gi", exact */

/* A Kubernetes quantity in thousandths, rounded up: "100m" = 100, "2" = 2000,
 * "0.5" = 500. */
int gpuq_milli_parse(const char *text, int64_t *milli, struct gpuq_err *err);
void gpuq_milli_print(int64_t milli, char *out, size_t room); /* "2", "0.5", "1.25" */

/* RFC 3339 ("2026-12-01T09:00Z", offsets and fractions allowed), "now+2h", "@unix",
 * "HH:MM" and "YYYY-MM-DD[THH:MM[:SS]]" without a zone = UTC. now_us resolves the
 * relative forms ("HH:MM" is the next time the clock shows it). */
int gpuq_instant_parse(const char *text, int64_t now_us, int64_t *at_us, struct gpuq_err *err);

/* True if the text names what a clock shows, without saying which one: neither a zone of its own, nor
 * "now+2h", nor "@unix". */
bool gpuq_instant_is_wall(const char *text);

/* "2026-12-01T09:00:00.000Z", always 24 characters and a NUL (room >= 25). */
void gpuq_instant_print(int64_t at_us, char *out, size_t room);

/* Signal names with or without SIG, or numbers 1..64: "USR1" -> 10. 0 unknown. */
int gpuq_signal_number(const char *name);
const char *gpuq_signal_name(int number); /* "USR1", or NULL */

#endif
