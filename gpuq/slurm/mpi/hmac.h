/* hmac.h - HMAC-SHA-256, by which one shows that it has a key and does not show the key
 *
 * Owns     nothing. Touches memory only.
 * Used by  mpi_gate.c.
 *
 * A few lines of our own (FIPS 180-4, RFC 2104): libcrypto would be paid for by each start of gpuq, and pods would need it.
 */
#ifndef GPUQ_SLURM_MPI_HMAC_H
#define GPUQ_SLURM_MPI_HMAC_H

#include <stddef.h>

#define HMAC_HEX_BYTES 65

/* Write the code of the words (NULL ends them; each counts with its end) in hexadecimal digits. */
void hmac_words(const char *key, const char *const *words, char out[HMAC_HEX_BYTES]);

/* The same of one piece of bytes. */
void hmac_bytes(const void *key, size_t n_key, const void *data, size_t n,
		char out[HMAC_HEX_BYTES]);

#endif
