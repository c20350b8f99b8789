/* gpuqd --audit: is what is stored whole. Reads alone, of a stopped daemon's directory or of a
 * backup. */
#include "gpuqd/daemon.h"

#include <inttypes.h>
#include <stdio.h>

#include "gpuqd/state/audit/model_audit.h"
#include "gpuqd/flow/load.h"
#include "gpuqd/store/store.h"

/* Load all as a start does: each record is of its form, what it refers to is there, and what
 * follows from it adds up. */
static int load(struct store *st, const struct config *c, struct gpuq_err *err)
{
	struct model *m = model_new("audit");
	int rc;

	if (!m)
		return gpuq_no_memory(err);
	m->policy = c->policy;
	rc = load_records(st, m, err);
	if (rc == 0)
		rc = model_audit(m, err);
	model_free(m);
	return rc;
}

int daemon_audit(const struct config *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct store_identity id;
	struct store *st = NULL;
	uint64_t n = 0;
	int rc = store_open_to_read(c->state, &st, &err);

	if (rc == 0)
		rc = store_audit(st, &n, &err);
	if (rc == 0 && store_schema(st) == STORE_SCHEMA)
		rc = store_audit_parts(st, &err);
	if (rc == 0 && store_schema(st) == STORE_SCHEMA)
		rc = load(st, c, &err);
	if (rc == 0) {
		id = store_identity(st);
		printf("whole: %" PRIu64 " records, schema %u", n, store_schema(st));
		if (store_schema(st) == STORE_SCHEMA)
			printf(", store %s, epoch %" PRIu32 ", batch %" PRIu64 "%s", id.store_id,
			       id.epoch, id.seq, id.flagged_copy ? ", a copy" : "");
		printf("\n");
	} else {
		fprintf(stderr, "gpuqd: %s\n", err.text);
	}
	store_close(st);
	return daemon_exit_of(rc);
}
