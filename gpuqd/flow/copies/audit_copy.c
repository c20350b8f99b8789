#include "gpuqd/flow/copies/audit_copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/net/command.h"

#define FOUND_BYTES 200
#define EXIT_DAMAGED 74

/* "" = it is what the manifest says. */
static int compare(int fd, const struct shelf_copy *c, char found[FOUND_BYTES],
		   struct gpuq_err *err)
{
	char hex[DIGEST_HEX_BYTES];
	int64_t bytes = 0;
	int rc;

	*found = '\0';
	if (!c->sealed)
		return 0;
	rc = digest_file(fd, -1, hex, &bytes, err);
	if (rc < 0)
		return gpuq_err_prefix(err, "%s", c->name);
	if (bytes < c->manifest.bytes)
		snprintf(found, FOUND_BYTES, "damaged: cut short, %" PRId64 " of %" PRId64 " bytes",
			 bytes, c->manifest.bytes);
	else if (strcmp(hex, c->manifest.sha256) != 0)
		snprintf(found, FOUND_BYTES, "damaged: its SHA-256 does not match its manifest");
	return 0;
}

static int open_it(int fd, const struct audit_tool *tool, char found[FOUND_BYTES],
		   struct gpuq_err *err)
{
	const char *argv[] = { tool->self,
			       "--audit",
			       "--state",
			       "/proc/self/fd/0",
			       tool->config ? "--config" : NULL,
			       tool->config,
			       NULL };
	const struct command cmd = { .argv = argv,
				     .in = fd,
				     .out = -1,
				     .limit_us = tool->limit_us,
				     .nice = true,
				     .stop = tool->stop };
	char said[COMMAND_SAID_BYTES];
	int code = 0, rc = command_run(&cmd, &code, said, err);

	if (rc < 0)
		return rc;
	if (code == 0)
		snprintf(found, FOUND_BYTES, "%.*s", (int)strcspn(said, ","), said);
	else if (code == EXIT_DAMAGED)
		snprintf(found, FOUND_BYTES, "damaged: %.180s",
			 strncmp(said, "gpuqd: ", 7) == 0 ? said + 7 : said);
	else
		return gpuq_fail(err, GPUQ_EIO, "%s --audit: exit code %d: %s", tool->self, code,
				 said);
	return 0;
}

int audit_copy(struct target *t, const struct shelf_copy *c, const struct audit_tool *tool,
	       char found[FOUND_BYTES], struct gpuq_err *err)
{
	int fd = -1, rc = target_open(t, c->name, &fd, err);

	if (rc < 0)
		return rc;
	rc = compare(fd, c, found, err);
	if (rc == 0 && !*found)
		rc = open_it(fd, tool, found, err);
	close(fd);
	return rc;
}
