#include "gpuqd/flow/report/figures.h"

#include "gpuqd/flow/journal.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/copy.h"

int figures_store(struct journal *j, struct gpuq_arena *a, struct gpuq_val **out,
		  struct gpuq_err *err)
{
	struct gpuq_val *v, *records;
	struct store_stats s;
	int rc = store_stats(journal_store(j), &s, err);

	if (rc < 0)
		return rc;
	v = gpuq_map(a);
	records = gpuq_map(a);
	gpuq_put(a, v, "bytes", gpuq_int(a, (int64_t)s.bytes));
	gpuq_put(a, v, "map_bytes", gpuq_int(a, (int64_t)s.map_bytes));
	gpuq_put(a, v, "disk_free_bytes", gpuq_int(a, (int64_t)s.free_bytes));
	gpuq_put(a, v, "disk_bytes", gpuq_int(a, (int64_t)s.disk_bytes));
	for (int t = 0; t < N_TABLES; t++)
		gpuq_put(a, records, table_names[t], gpuq_int(a, (int64_t)s.n_records[t]));
	gpuq_put(a, v, "records", records);
	*out = v;
	return 0;
}
