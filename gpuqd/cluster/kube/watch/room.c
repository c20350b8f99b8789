#include "gpuqd/cluster/kube/watch/room.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#define uthash_fatal(msg) abort() /* as loop_after() */
#include <uthash.h>

#define WHOLE 1000 /* thousandths */

struct holder {
	UT_hash_handle hh;
	LIST_ENTRY(holder) beside;
	struct at *at;
	char *pod;
	int *devices;
	size_t n;
	int64_t milli, mib;
};

struct at {
	UT_hash_handle hh;
	LIST_HEAD(, holder) holders;
	char *node;
};

struct rooms {
	struct holder *holders; /* by pod */
	struct at *nodes;
};

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

struct rooms *rooms_new(void)
{
	return must(calloc(1, sizeof(struct rooms)));
}

static void drop(struct rooms *r, struct holder *h)
{
	struct at *at = h->at;

	HASH_DEL(r->holders, h);
	LIST_REMOVE(h, beside);
	free(h->pod);
	free(h->devices);
	free(h);
	if (!LIST_EMPTY(&at->holders))
		return;
	HASH_DEL(r->nodes, at);
	free(at->node);
	free(at);
}

void rooms_free(struct rooms *r)
{
	struct holder *h, *next;

	HASH_ITER(hh, r->holders, h, next)
		drop(r, h);
	free(r);
}

static struct at *at_node(struct rooms *r, const char *node)
{
	struct at *at;

	HASH_FIND_STR(r->nodes, node, at);
	if (at)
		return at;
	at = must(calloc(1, sizeof(*at)));
	at->node = must(strdup(node));
	HASH_ADD_KEYPTR(hh, r->nodes, at->node, strlen(at->node), at);
	return at;
}

void rooms_hold(struct rooms *r, const char *pod, const char *node, const int *devices, size_t n,
		int64_t milli, int64_t mib)
{
	struct holder *h;

	HASH_FIND_STR(r->holders, pod, h);
	if (h && h->n == n && memcmp(h->devices, devices, n * sizeof(*devices)) == 0)
		return;
	rooms_leave(r, pod);
	h = must(calloc(1, sizeof(*h)));
	h->pod = must(strdup(pod));
	h->devices = must(calloc(n + 1, sizeof(*h->devices)));
	memcpy(h->devices, devices, n * sizeof(*devices));
	h->n = n;
	h->milli = milli;
	h->mib = mib;
	h->at = at_node(r, node);
	LIST_INSERT_HEAD(&h->at->holders, h, beside);
	HASH_ADD_KEYPTR(hh, r->holders, h->pod, strlen(h->pod), h);
}

bool rooms_leave(struct rooms *r, const char *pod)
{
	struct holder *h;

	HASH_FIND_STR(r->holders, pod, h);
	if (h)
		drop(r, h);
	return h != NULL;
}

size_t rooms_of(const struct rooms *r, const char *node, int64_t device_mib,
		struct backend_room *out, size_t n)
{
	const struct holder *h;
	size_t n_pods = 0;
	struct at *at;

	for (size_t d = 0; d < n; d++)
		out[d] = (struct backend_room){ WHOLE, device_mib };
	HASH_FIND_STR(r->nodes, node, at);
	if (!at)
		return 0;
	LIST_FOREACH(h, &at->holders, beside) {
		n_pods++;
		for (size_t i = 0; i < h->n; i++) {
			const size_t d = (size_t)h->devices[i];

			if (d >= n)
				continue;
			out[d].milli -= h->milli;
			out[d].mib -= h->milli >= WHOLE ? device_mib : h->mib;
		}
	}
	return n_pods;
}
