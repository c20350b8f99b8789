#include "gpuqd/flow/admit/warn/claim_fit.h"

#include <inttypes.h>

#include "gpuqd/state/objects/objects.h"

void claim_fit_of(const struct model *m, const struct queue *q, const struct gpuq_group *g,
		  struct gpuq_arena *a, struct claim_fit *out)
{
	const char *home = objects_namespace(m->objects, model_queue_namespace(q)), *words;

	*out = (struct claim_fit){ .d = objects_dra(m->objects) };
	if (g->n_claims == 0 || objects_claims_lack(m->objects, &words))
		return;
	for (size_t i = 0; i < g->n_claims; i++) {
		const struct dra_claim *claim;

		if (dra_named_before(g, i))
			continue;
		if (dra_find(out->d, &g->claims[i], home, a, &out->specs[out->n], &claim) !=
		    DRA_FOUND) {
			out->n = 0; /* its reason names the object */
			return;
		}
		out->n += !(claim && claim->allocated);
	}
}

/* The devices of a node, as if none were in use. */
static size_t devices_of(const struct dra *d, const char *node, struct gpuq_arena *a,
			 struct dra_at **out)
{
	const char *odd;
	const size_t n = dra_node(d, node, a, out, &odd);

	for (size_t i = 0; i < n; i++)
		(*out)[i].used = NULL;
	return n;
}

bool claim_fit_on(const struct claim_fit *c, const char *node)
{
	const struct dra_spec *specs[GPUQ_CLAIMS_MAX];
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra_pick *picks = gpuq_arena_calloc(&a, c->n * DRA_RESULTS_MAX + 1, sizeof(*picks));
	struct dra_at *at;
	const size_t n_at = devices_of(c->d, node, &a, &at);
	size_t n_picks = 0;
	bool fits;

	for (size_t i = 0; i < c->n; i++)
		specs[i] = &c->specs[i];
	fits = picks &&
	       dra_match(c->d, at, n_at, NULL, specs, c->n, &a, picks, &n_picks, NULL) == DRA_FITS;
	gpuq_arena_done(&a);
	return fits;
}

/* Return how many devices of a node the option could have. */
static int64_t most_on(const struct dra *d, const struct dra_option *o, const char *node)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra_option one = *o;
	const struct dra_request request = { "one", &one, 1 };
	const struct dra_spec spec = {
		.requests = &request, .n_requests = 1, .config = "", .odd = ""
	};
	const struct dra_spec *specs = &spec;
	struct dra_at *at;
	const size_t n_at = devices_of(d, node, &a, &at);
	int64_t n;

	one.all = false;
	one.count = 1;
	n = n_at ? dra_fits(d, at, n_at, &specs, 1, DRA_RESULTS_MAX) : 0;
	gpuq_arena_done(&a);
	return n;
}

void claim_fit_tell(const struct claim_fit *c, const struct model *m,
		    bool (*may_be)(const void *arg, const struct node *n), const void *arg,
		    struct gpuq_buf *out)
{
	for (size_t i = 0; i < c->n; i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;

		if (dra_check(c->d, &c->specs[i], &err) != 0) {
			gpuq_buf_printf(out, "%s%s", out->len ? "; " : " (", err.text);
			continue;
		}
		for (uint32_t r = 0; r < c->specs[i].n_requests; r++) {
			const struct dra_request *request = &c->specs[i].requests[r];

			for (uint32_t k = 0; k < request->n_options; k++) {
				const struct dra_option *o = &request->options[k];
				const int64_t asked = o->all ? 1 : o->count;
				int64_t most = 0;

				for (const struct node *n = m->nodes; n && most < asked;
				     n = n->hh.next) {
					const int64_t here =
						may_be(arg, n) ? most_on(c->d, o, n->name) : 0;

					most = here > most ? here : most;
				}
				if (most < asked)
					gpuq_buf_printf(out,
							"%s%" PRId64 " of class %s%s requested, "
							"%" PRId64 " on the largest node",
							out->len ? "; " : " (", asked, o->class_,
							o->selectors.n ? " with these selectors"
								       : "",
							most);
			}
		}
	}
}
