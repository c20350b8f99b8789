#include "gpuqd/site_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpuqd/flow/admit/zones.h"
#include "gpuqd/site/site.h"
#include "gpuqd/site/site_merge.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/yaml.h"

int site_file_read(const char *path, struct gpuq_buf *bytes, struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf text = GPUQ_BUF_INIT_MAX(GPUQ_YAML_BYTES_MAX);
	struct gpuq_val **docs;
	struct site *site = NULL;
	FILE *f = fopen(path, "re");
	char chunk[4096];
	size_t n, n_docs;
	int rc = 0;

	if (!f)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		gpuq_buf_add(&text, chunk, n);
	fclose(f);
	if (text.failed)
		rc = gpuq_fail(err, GPUQ_ETOOBIG, "%s: larger than a site file can be", path);
	if (rc == 0)
		rc = gpuq_yaml_parse(&mem, path, text.data ? text.data : "", text.len, &docs,
				     &n_docs, err);
	if (rc == 0 && n_docs != 1)
		rc = gpuq_fail(err, GPUQ_EINVAL, "%s:1:1: expected one document", path);
	if (rc == 0)
		zones_settle(&mem, docs[0], (int64_t)time(NULL) * GPUQ_US_PER_S);
	if (rc == 0)
		rc = site_read(docs[0], path, 0, &site, err);
	if (rc == 0)
		rc = site_check_names(site, docs[0], path, err);
	if (rc == 0)
		gpuq_mp_write(bytes, docs[0]);
	site_free(site);
	gpuq_buf_done(&text);
	gpuq_arena_done(&mem);
	return rc;
}
