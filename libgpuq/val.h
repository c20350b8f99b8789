/* val.h - a tree of values: what YAML, JSON and MessagePack have in common
 *
 * Owns     nothing: trees live in the arena they were made in.
 * Touches  memory only.
 * Used by  job and site files (yaml.h), the wire (mp.h), --json output, the store.
 *
 * One tree stands between every text or wire format and every C struct: readers
 * (gpuq_yaml_parse, gpuq_mp_read) make it, schemas (schema.h) turn it into structs
 * and back, writers (gpuq_json_write, gpuq_yaml_write, gpuq_mp_write) print it.
 * A value read from a file knows its line and column.
 */
#ifndef LIBGPUQ_VAL_H
#define LIBGPUQ_VAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/buf.h"

enum gpuq_type {
	GPUQ_NULL,
	GPUQ_BOOL,
	GPUQ_INT, /* int64 */
	GPUQ_REAL, /* finite double; JSON prints the shortest form that reads back */
	GPUQ_STR, /* n bytes of UTF-8, NUL behind, no NUL inside unless read from the wire */
	GPUQ_BIN, /* n bytes of anything; JSON prints base64 */
	GPUQ_LIST,
	GPUQ_MAP,
};

struct gpuq_mark {
	uint32_t line, col; /* from 1; 0 = not from a file */
};

struct gpuq_val;

struct gpuq_pair {
	const char *key;
	struct gpuq_mark at;
	struct gpuq_val *val;
};

struct gpuq_val {
	enum gpuq_type type;
	bool plain; /* a YAML scalar without quotes: its text is in src */
	bool broken; /* a member was lost for want of memory, see gpuq_val_ok */
	struct gpuq_mark at;
	uint32_t n, room; /* bytes (STR, BIN) or members (LIST, MAP); room of the array */
	const char *src; /* as written in the file, for scalars read from YAML; else NULL */
	union {
		bool b;
		int64_t i;
		double d;
		const char *s;
		struct gpuq_val **items;
		struct gpuq_pair *pairs;
	};
};

/* Makers. NULL when the arena is exhausted; adders accept NULL values and maps and
 * pass NULL on, so that a tree can be built without a check at each step and asked
 * once at the end (gpuq_val_ok). */
struct gpuq_val *gpuq_null(struct gpuq_arena *a);
struct gpuq_val *gpuq_bool(struct gpuq_arena *a, bool b);
struct gpuq_val *gpuq_int(struct gpuq_arena *a, int64_t i);
struct gpuq_val *gpuq_real(struct gpuq_arena *a, double d);
struct gpuq_val *gpuq_str(struct gpuq_arena *a, const char *s); /* copies; NULL gives null */
struct gpuq_val *gpuq_strn(struct gpuq_arena *a, const char *s, size_t n);
struct gpuq_val *gpuq_bin(struct gpuq_arena *a, const void *bytes, size_t n);
struct gpuq_val *gpuq_list(struct gpuq_arena *a);
struct gpuq_val *gpuq_map(struct gpuq_arena *a);

/* Append to a list; returns item. */
struct gpuq_val *gpuq_add(struct gpuq_arena *a, struct gpuq_val *list, struct gpuq_val *item);

/* Append a pair to a map without looking for the key; key is copied. Returns val. */
struct gpuq_val *gpuq_put(struct gpuq_arena *a, struct gpuq_val *map, const char *key,
			  struct gpuq_val *val);

/* Replace the value of key, or append the pair. */
struct gpuq_val *gpuq_set(struct gpuq_arena *a, struct gpuq_val *map, const char *key,
			  struct gpuq_val *val);

/* Remove key if it is there. */
void gpuq_unset(struct gpuq_val *map, const char *key);

/* The value of key, or NULL (also when map is NULL or no map). O(members). */
struct gpuq_val *gpuq_get(const struct gpuq_val *map, const char *key);

/* Follow keys down: gpuq_path(v, "metadata", "name", NULL). */
struct gpuq_val *gpuq_path(const struct gpuq_val *map, ...) __attribute__((sentinel));

/* Typed looks with a default for absent, null or another type. */
const char *gpuq_get_str(const struct gpuq_val *map, const char *key, const char *dflt);
int64_t gpuq_get_int(const struct gpuq_val *map, const char *key, int64_t dflt);
bool gpuq_get_bool(const struct gpuq_val *map, const char *key, bool dflt);

/* Whether v is there and nothing that was added to it, at any depth, got lost. */
bool gpuq_val_ok(const struct gpuq_val *v);

/* The first pair whose key an earlier pair has as well, or NULL. Scratch memory comes
 * from a; without it the pair is not found but *exhausted is set. O(n log n), because
 * a hostile map may have very many keys. */
const struct gpuq_pair *gpuq_map_repeat(struct gpuq_arena *a, const struct gpuq_val *map,
					bool *exhausted);

/* A deep copy in another arena; NULL when that is exhausted. */
struct gpuq_val *gpuq_val_copy(struct gpuq_arena *a, const struct gpuq_val *v);

/* Same type and same content (marks do not count; key order of maps does not count). */
bool gpuq_val_equal(const struct gpuq_val *x, const struct gpuq_val *y);

/* "a map", "an integer", ... for messages. */
const char *gpuq_type_name(enum gpuq_type t);

/* Writers append to b; b->failed tells of no memory.
 * JSON: one line; U+2028/9 and control characters escaped; invalid UTF-8 bytes
 * become U+FFFD. indent > 0 gives that many spaces a level and newlines. */
void gpuq_json_write(struct gpuq_buf *b, const struct gpuq_val *v, int indent);
void gpuq_json_str(struct gpuq_buf *b, const char *s, size_t n); /* quoted and escaped */

/* YAML 1.2, block style, strings quoted where they would read as another type. */
void gpuq_yaml_write(struct gpuq_buf *b, const struct gpuq_val *v);

#endif
