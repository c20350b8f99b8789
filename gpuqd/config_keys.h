/* config_keys.h - every key of gpuqd.yaml and of a site file, from the rows that read them
 *
 * Owns     nothing. Touches memory only.
 * Used by  main.c (gpuqd --print-keys), from which tests/lint/key-tables prints the manuals' tables.
 */
#ifndef GPUQD_CONFIG_KEYS_H
#define GPUQD_CONFIG_KEYS_H

#include "libgpuq/buf.h"

/* A line for each key: the file and the keys above it (`site:queues`), the key, what it accepts, its default,
 * what it means; with tabs between them. */
void config_keys_print(struct gpuq_buf *out);

#endif
