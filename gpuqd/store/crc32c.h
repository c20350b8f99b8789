/* crc32c.h - CRC-32C (Castagnoli), the checksum of every stored record
 *
 * Source: RFC 3720 appendix B.4; the tables are computed at first use. */
#ifndef GPUQD_STORE_CRC32C_H
#define GPUQD_STORE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *bytes, size_t n);
/* The checksum of what crc is that of, followed by these bytes. */
uint32_t crc32c_more(uint32_t crc, const void *bytes, size_t n);
/* The same where the machine has no instruction for it. */
uint32_t crc32c_by_tables(uint32_t crc, const void *bytes, size_t n);

#endif
