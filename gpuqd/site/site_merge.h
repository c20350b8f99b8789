/* site_merge.h - a site file on top of the site there is, and what that changes
 *
 * Owns     nothing: trees live in the caller's arena.
 * Touches  memory only.
 * Used by  flow/admit/apply, gpuq export (through site.get).
 *
 * An object of the file that there is already keeps the keys that the file does not mention;
 * a key that it mentions gets that value as a whole; null puts it back to its default. With
 * prune the file is all there is. The merged tree is checked by site_read(), whose messages
 * have the file's positions because values keep their marks.
 */
#ifndef GPUQD_SITE_SITE_MERGE_H
#define GPUQD_SITE_SITE_MERGE_H

#include <stdbool.h>

#include "gpuqd/site/site.h"

/* The lists of a site and what one member of each is called. */
struct site_kind {
	const char *list; /* "queues" */
	const char *kind; /* "queue" */
};
extern const struct site_kind site_kinds[]; /* ends with list == NULL */

/* *out: what site_read() is to read. old is a normal tree (struct site's). */
int site_merge(struct gpuq_arena *a, const struct gpuq_val *old, const struct gpuq_val *file,
	       bool prune, struct gpuq_val **out, struct gpuq_err *err);

/* Take "queue/research" out of a tree that site_merge() made.
 * GPUQ_ENOENT: there is no such object, with the nearest name. GPUQ_EINVAL: not of that form. */
int site_remove(struct gpuq_val *tree, const char *object, struct gpuq_err *err);

/* Fails with GPUQ_ENOENT and the name that is nearest to the one in "queue/NAME". */
int site_no_such(const struct gpuq_val *tree, const char *object, struct gpuq_err *err);

/* The member of that name, or NULL. list: "queues". */
struct gpuq_val *site_member(const struct gpuq_val *tree, const char *list, const char *name);

/* Return the difference between two normal trees: a list of maps {object: "queue/research",
 * action: "added" | "changed" | "removed", old, new}, where old and new hold the keys that
 * differ. Empty when they are equivalent. NULL: no memory. */
struct gpuq_val *site_diff(struct gpuq_arena *a, const struct gpuq_val *old,
			   const struct gpuq_val *new_);

/* A normal tree with every list in the order of names, but pools and flavors as they are. NULL: no memory. */
struct gpuq_val *site_sorted(struct gpuq_arena *a, const struct gpuq_val *tree);

/* True for names as Kubernetes has them: small letters, digits and - inside; with dots, several of them. */
bool site_is_dns(const char *s, bool dots);

/* Names that site_read() lets pass, because sites of old may hold them: flavors of quotas
 * and preferences, queues and pools of reservations, users' default queues. v is the tree
 * that s was read from. GPUQ_EINVAL with the place and the nearest name. */
int site_check_names(const struct site *s, const struct gpuq_val *v, const char *file,
		     struct gpuq_err *err);

#endif
