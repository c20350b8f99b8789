/* schema.h - tables that describe structs, and the two functions that use them
 *
 * Owns     nothing; what it reads lives in the caller's arena.
 * Touches  memory only.
 * Used by  job specs (spec.h), site files, the daemon's configuration, RPC params.
 *
 * A row says: this key, of this kind, goes to this offset of the struct. Reading a
 * value tree through the table checks types, ranges, unknown and missing keys (with
 * the nearest known key in the message) and gives the place: "file:line:col: path:
 * expected ..." for files, the field path alone for the wire. Writing goes back:
 * what was read is printed in the same form, defaults left out. Help texts, manual
 * tables and fuzz targets come from the same rows. Null is "not given".
 */
#ifndef LIBGPUQ_SCHEMA_H
#define LIBGPUQ_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

enum gpuq_kind {
	/* kind          C type at offset                 accepted forms */
	GPUQ_K_BOOL, /* bool                          true, false */
	GPUQ_K_INT, /* int64_t                       integer in [min, max] */
	GPUQ_K_LIMIT, /* int64_t                       integer, or "unlimited" = GPUQ_UNLIMITED */
	GPUQ_K_STR, /* const char *                  string (a plain number is taken as its text) */
	GPUQ_K_NAME, /* const char *                  name: [A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])? */
	GPUQ_K_DURATION, /* int64_t us                    units.h */
	GPUQ_K_BYTES, /* int64_t bytes                 units.h */
	GPUQ_K_MILLI, /* int64_t thousandths           number or quantity string */
	GPUQ_K_INSTANT, /* int64_t us since 1970         units.h; reader's now_us */
	GPUQ_K_ENUM, /* int                           one of names[], its index */
	GPUQ_K_SIGNAL, /* int                           signal name or number */
	GPUQ_K_STRLIST, /* struct gpuq_strlist           list of strings; one string = a list of one */
	GPUQ_K_STRMAP, /* struct gpuq_strmap            map of scalars, as text */
	GPUQ_K_OBJECT, /* struct of sub, in place       map */
	GPUQ_K_OBJECT_PTR, /* struct of sub *, NULL = absent  map */
	GPUQ_K_OBJECTS, /* struct gpuq_objects           list of maps, each as sub */
	GPUQ_K_VAL, /* struct gpuq_val *             anything, kept as it is */
	GPUQ_K_CUSTOM, /* whatever fn says */
};

struct gpuq_strlist {
	const char **items;
	size_t n;
};

/* True if the list has the string. */
bool gpuq_strlist_has(const struct gpuq_strlist *l, const char *s);
/* The same for a list that filters: an empty one lets all pass. */
bool gpuq_strlist_passes(const struct gpuq_strlist *l, const char *s);
/* True if both lists have the same strings in the same order. */
bool gpuq_strlist_same(const struct gpuq_strlist *a, const struct gpuq_strlist *b);

struct gpuq_strmap {
	const char **keys, **vals; /* in the order of the file */
	size_t n;
};

/* Return the value of a key; where it is not there, NULL, or "" of _text(). */
const char *gpuq_strmap_get(const struct gpuq_strmap *m, const char *key);
const char *gpuq_strmap_text(const struct gpuq_strmap *m, const char *key);

/* The number of units of a resource; bytes where its name has those (spec/resource.h). */
struct gpuq_amount {
	const char *name;
	int64_t count;
};

struct gpuq_objects {
	void *items; /* n structs of sub->size bytes each */
	size_t n;
};

struct gpuq_schema;
struct gpuq_reader;

/* A kind of one's own. read: v into out (the field's address); write: the value for
 * the field at in, or NULL when it is at its default and is to be left out. */
struct gpuq_custom {
	int (*read)(struct gpuq_reader *r, const struct gpuq_val *v, void *out);
	struct gpuq_val *(*write)(struct gpuq_arena *a, const void *in);
};

enum {
	GPUQ_F_REQUIRED = 1,
	GPUQ_F_KEY = 2 /* names the object in its list: must be unique */,
	GPUQ_F_HIDDEN = 4 /* read, but not listed in help */,
	GPUQ_F_LIVE = 8 /* may change on reload */
};

struct gpuq_field {
	const char *key;
	enum gpuq_kind kind;
	unsigned flags;
	size_t offset;
	/* Range of the number; of a string's bytes; of a list's items. Both 0 = no check
	 * beyond the kind's own; max INT64_MAX = no upper end. */
	int64_t min, max;
	const char *const *names; /* ENUM: NULL-terminated */
	const struct gpuq_schema *sub; /* OBJECT, OBJECT_PTR, OBJECTS */
	const struct gpuq_custom *custom; /* CUSTOM */
	const char *form; /* CUSTOM: what is accepted, for manuals; else NULL: as the kind says */
	const char *doc; /* one sentence for help and manuals */
};

struct gpuq_schema {
	const char *name; /* "job", for messages */
	size_t size; /* of the struct */
	const struct gpuq_field *fields; /* ends with key == NULL */
	void (*defaults)(void *obj); /* called on the zeroed struct first; may be NULL */
	/* Checks across fields, after all were read; may be NULL. v is for marks. */
	int (*check)(struct gpuq_reader *r, const struct gpuq_val *v, void *obj);
};

struct gpuq_reader {
	struct gpuq_arena *arena; /* where strings and arrays go */
	const char *file; /* for messages; NULL = not a file: paths only */
	int64_t now_us; /* for relative instants */
	bool by_name; /* members of lists are told by their names: "queues[red]" */
	bool lenient; /* skip unknown keys (the wire: newer clients) */
	bool stored; /* was accepted before: rules added since then do not refuse it */
	struct gpuq_err *err;
	char path[160]; /* where the reader is: "groups[1].gpus" */
};

/* Read map v into *obj (schema->size bytes, overwritten only on success).
 * Returns 0, GPUQ_EINVAL, GPUQ_ERANGE, GPUQ_ENOMEM; err->field has the path. */
int gpuq_schema_read(struct gpuq_reader *r, const struct gpuq_schema *schema,
		     const struct gpuq_val *v, void *obj);

/* The value tree that reads back as *obj; fields at their defaults are left out.
 * NULL when the arena is exhausted. */
struct gpuq_val *gpuq_schema_write(struct gpuq_arena *a, const struct gpuq_schema *schema,
				   const void *obj);

/* Refuse at v: "file:line:col: path: <text>"; err->field gets the path. Returns code. */
int gpuq_reader_fail(struct gpuq_reader *r, const struct gpuq_val *v, int code, const char *fmt,
		     ...) __attribute__((format(printf, 4, 5)));

/* Refuse a member of map v, at the map where it is absent. Returns GPUQ_EINVAL. */
int gpuq_reader_fail_key(struct gpuq_reader *r, const struct gpuq_val *v, const char *key,
			 const char *what);

/* Step into a member while reading by hand; gpuq_reader_leave(r, mark) goes back. */
size_t gpuq_reader_enter(struct gpuq_reader *r, const char *key);
size_t gpuq_reader_enter_item(struct gpuq_reader *r, size_t ix);
size_t gpuq_reader_enter_member(struct gpuq_reader *r, const struct gpuq_val *list, size_t ix);
void gpuq_reader_leave(struct gpuq_reader *r, size_t mark);

/* The known name nearest to `name` (Damerau-Levenshtein distance <= 2 and below half
 * its length), or NULL. names ends with NULL. */
const char *gpuq_nearest(const char *name, const char *const *names);

#endif
