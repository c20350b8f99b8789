/* fnv.h - FNV-1a, 64 bits
 *
 * Owns     nothing. Touches memory only.
 * Used by  gpuqd/util/hash.h, gpuqd/cluster/kube/pods/label.c; cmd/job/code.c and slurm/slurm_step.c of gpuq.
 *
 * Source: RFC 9923, "The FNV Non-Cryptographic Hash Algorithm".
 */
#ifndef LIBGPUQ_FNV_H
#define LIBGPUQ_FNV_H

#include <stddef.h>
#include <stdint.h>

/* Over n more bytes; begin with GPUQ_FNV_START. The same everywhere: it may be stored. */
#define GPUQ_FNV_START UINT64_C(0xcbf29ce484222325)
static inline uint64_t gpuq_fnv(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	for (; n; p++, n--)
		h = (h ^ *p) * UINT64_C(0x100000001b3);
	return h;
}

#endif
