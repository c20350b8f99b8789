/* code.put: a directory that jobs will carry arrives, as an archive in pieces. */
#include <inttypes.h>
#include <stdlib.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/base/worker.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/method/m_int.h"
#include "gpuqd/flow/code/codes.h"
#include "libgpuq/limits.h"

struct put_params {
	const char *digest;
	int64_t bytes, offset;
	struct gpuq_val *data;
};

static const struct gpuq_field put_fields[] = {
	P(put_params, "digest", GPUQ_K_STR, digest, .flags = GPUQ_F_REQUIRED, .min = 64, .max = 64,
	  .doc = "SHA-256 of the archive, in hex digits"),
	P(put_params, "bytes", GPUQ_K_INT, bytes, .flags = GPUQ_F_REQUIRED, .min = 1,
	  .max = GPUQ_CODE_BYTES_MAX, .doc = "size of the archive"),
	P(put_params, "offset", GPUQ_K_INT, offset, .min = 0, .max = GPUQ_CODE_BYTES_MAX,
	  .doc = "place of data in it"),
	P(put_params, "data", GPUQ_K_VAL, data,
	  .doc = "piece of it; absent: the call only asks whether it is there"),
	P_END,
};
const struct gpuq_schema p_code_put = P_SCHEMA(put_params, put_fields);

static void reply(struct rpc_call *c, int64_t have, bool done)
{
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "have", gpuq_int(a, have));
	gpuq_put(a, v, "done", gpuq_bool(a, done));
	rpc_reply(c, v);
}

/* ---- the last piece: a thread makes the archive durable ---- */

struct putting {
	struct methods *m;
	struct rpc_call *call;
	struct codes_settle *settle;
	int64_t bytes;
};

static void work(void *arg)
{
	codes_settle(((struct putting *)arg)->settle);
}

static void done(void *arg)
{
	struct putting *x = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	const int64_t now_us = loop_mono_us(journal_loop(x->m->j));

	if (codes_settled(x->m->codes, x->settle, now_us, &err) < 0) {
		rpc_fail(x->call, &err);
	} else {
		log_info("code.stored", "user=%s bytes=%" PRId64,
			 LOGS(rpc_call_peer(x->call)->user), x->bytes);
		reply(x->call, x->bytes, true);
	}
	free(x);
}

void codes_dropped(void *arg)
{
	struct putting *x = arg;

	codes_settle_drop(x->settle);
	free(x);
}

static int settle(struct methods *m, struct rpc_call *c, struct codes_settle *s, int64_t bytes,
		  struct gpuq_err *err)
{
	struct putting *x = malloc(sizeof(*x));
	int rc;

	if (!x)
		abort(); /* as loop_after(): it would never end */
	*x = (struct putting){ m, c, s, bytes };
	rc = worker_run(m->codes_worker, work, done, x, err);
	if (rc < 0) { /* no thread: the loop has to wait for the disk */
		work(x);
		done(x);
	}
	return 0;
}

/* ---- */

/* An archive that no pod of this cluster could be given is not carried. */
static int may_carry(const struct methods *m, int64_t bytes, struct gpuq_err *err)
{
	if (!m->codes)
		return gpuq_fail(err, GPUQ_EINTERNAL, "gpuqd keeps no code of jobs");
	if (strcmp(m->kind, "kube") == 0 && bytes > (int64_t)GPUQ_CODE_POD_BYTES &&
	    !codes_goes_outside(m->codes, bytes))
		return gpuq_fail_field(
			err, GPUQ_ETOOBIG, "code",
			"it takes %" PRId64
			" KiB compressed, and %u KiB fit into a ConfigMap: leave "
			"files out with .gpuqignore, or put them on a volume of the job or of the "
			"queue and submit from there (administrators: code_store of gpuqd.yaml)",
			(bytes + 1023) / 1024, GPUQ_CODE_POD_BYTES >> 10);
	return 0;
}

int m_code_put(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	const struct put_params *p = params;
	struct methods *m = arg;
	const char *user = rpc_call_peer(c)->user;
	const int64_t now_us = loop_mono_us(journal_loop(m->j));
	struct codes_settle *s = NULL;
	int64_t have = 0;
	int rc = may_carry(m, p->bytes, err);

	if (rc == 0 && strspn(p->digest, "0123456789abcdef") != 64)
		rc = gpuq_fail_field(err, GPUQ_EINVAL, "digest", "expected 64 hex digits");
	if (rc == 0 && p->data && (p->data->type != GPUQ_BIN || p->data->n > GPUQ_CODE_PIECE_BYTES))
		rc = gpuq_fail_field(err, GPUQ_EINVAL, "data", "expected at most %u bytes",
				     GPUQ_CODE_PIECE_BYTES);
	if (rc < 0)
		return rc;
	have = codes_find(m->codes, user, p->digest, now_us);
	if (have >= 0) {
		reply(c, have, true);
		return 0;
	}
	have = 0;
	if (p->data) {
		const struct codes_piece piece = { .user = user,
						   .digest = p->digest,
						   .total = p->bytes,
						   .offset = p->offset,
						   .bytes = p->data->s,
						   .n = p->data->n };

		rc = codes_put(m->codes, &piece, now_us, &have, &s, err);
	}
	if (rc < 0)
		return rc;
	if (s)
		return settle(m, c, s, p->bytes, err);
	reply(c, have, false);
	return 0;
}

/* ---- job.submit ---- */

int codes_check(const struct methods *m, struct rpc_call *c, const struct gpuq_val *specs,
		bool dry_run, struct gpuq_err *err)
{
	const int64_t now_us = loop_mono_us(journal_loop(m->j));

	for (uint32_t i = 0; specs->type == GPUQ_LIST && i < specs->n; i++) {
		struct gpuq_val *code = gpuq_get(specs->items[i], "code");
		const char *digest = gpuq_get_str(code, "digest", NULL);
		int64_t bytes;

		if (!digest && code && code->type == GPUQ_STR)
			return gpuq_fail_field(
				err, GPUQ_EINVAL, "code",
				"code: expected the digest of a directory that was carried; this "
				"version of gpuq is too old to do so");
		if (!digest || dry_run)
			continue;
		bytes = m->codes ? codes_find(m->codes, rpc_call_peer(c)->user, digest, now_us)
				 : -1;
		if (bytes < 0)
			return gpuq_fail_field(err, GPUQ_ENOENT, "code.digest",
					       "the code of %.80s is not stored by gpuqd, or no "
					       "longer: submit with "
					       "--code DIR",
					       gpuq_get_str(code, "dir", "?"));
		gpuq_set(rpc_call_arena(c), code, "bytes", gpuq_int(rpc_call_arena(c), bytes));
	}
	return 0;
}
