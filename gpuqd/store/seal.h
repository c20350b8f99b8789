/* seal.h - checksum of a record, digest of a table
 *
 * Owns     nothing. Touches memory only.
 * Used by  the files of store/.
 *
 * A stored value is a head and the caller's bytes. The head is a version and a CRC32C over
 * the table's name, the key's length, the key and the bytes, so that a record that turns up
 * under another key or in another table is not accepted as intact. The digest of a table is the
 * sum of a mix of those checksums: it does not depend on an order, and a missing,
 * duplicate or outdated record changes it.
 */
#ifndef GPUQD_STORE_SEAL_H
#define GPUQD_STORE_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEAL_BYTES 5
#define SEAL_BYTES_1 6 /* of schema 1: without the key, and with the table's number */

struct seal_sum {
	uint64_t n, digest;
};

/* Return the start value of a table's checksums. */
uint32_t seal_seed(const char *table);
/* Write the head of a record at head and return its checksum. */
uint32_t seal_write(unsigned char head[SEAL_BYTES], uint32_t seed, const void *key, size_t key_len,
		    const void *val, size_t val_len);
/* True if a record is intact; *crc is its checksum. */
bool seal_holds(uint32_t seed, const void *key, size_t key_len, const void *record, size_t n,
		uint32_t *crc);
/* The same for schema 1, where the table's number is in the head. */
bool seal_holds_1(const void *record, size_t n);
/* Return the checksum in a record's head, without checking it. */
uint32_t seal_crc(const void *record, size_t n);

void seal_add(struct seal_sum *s, uint32_t crc);
void seal_remove(struct seal_sum *s, uint32_t crc);

#endif
