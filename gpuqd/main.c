/* main.c - arguments, exit code; everything else is daemon.c */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/cluster/local/shepherd/shepherd.h"
#include "gpuqd/config.h"
#include "gpuqd/config_keys.h"
#include "gpuqd/daemon.h"
#include "gpuqd/rpc/tls.h"
#include "libgpuq/limits.h"

/* Memory of large blocks goes back to the system as each is freed. By default the least size of such a
 * block grows with those that were freed, up to 32 MiB, and what one decision on 100,000 jobs took
 * stays with the process. */
static void give_back(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	mallopt(M_TRIM_THRESHOLD, 1 << 20);
#endif
}

static void print_name(void *arg, const char *name)
{
	(void)arg;
	puts(name);
}

/* --make-cert. The state directory need not exist yet. */
static int make_cert(const struct config *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	char dir[PATH_MAX], pin[GPUQ_PIN_BYTES];
	int rc;

	snprintf(dir, sizeof(dir), "%s/tls", c->state);
	if (mkdir(c->state, 0700) != 0 && errno != EEXIST)
		rc = gpuq_fail(&err, GPUQ_EIO, "%s: %s", c->state, strerror(errno));
	else
		rc = tls_make_cert(dir, c->make_cert.items, c->make_cert.n, pin, &err);
	if (rc < 0) {
		fprintf(stderr, "gpuqd: %s\n", err.text);
		return rc == GPUQ_EEXIST ? EXIT_CONFIG : daemon_exit_of(rc);
	}
	printf("%s/cert.pem\n%s/key.pem\npin %s\n", dir, dir, pin);
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct config c;
	int rc;

	/* A shepherd is this program, too, so that there is one file to install. */
	if (argc > 1 && strcmp(argv[1], "--shepherd") == 0)
		return shepherd_main(argc, argv);
	/* For tests that kill it at each of them; an ordinary build has none. */
	if (argc == 2 && strcmp(argv[1], "--failpoints") == 0) {
		failpoint_each(print_name, NULL);
		return EXIT_OK;
	}
	log_init(LOG_L_INFO);
	rc = config_read(&c, argc, argv, &err);
	if (rc < 0) {
		fprintf(stderr, "gpuqd: %s\n", err.text);
		return strstr(err.text, "see gpuqd --help") ? EXIT_USAGE : EXIT_CONFIG;
	}
	if (c.help || c.version || c.print_keys) {
		if (c.help)
			config_usage(&text);
		else if (c.print_keys)
			config_keys_print(&text);
		else
			gpuq_buf_adds(&text, "gpuqd " PACKAGE_VERSION "\n");
		fputs(gpuq_buf_str(&text), stdout);
		rc = EXIT_OK;
	} else if (c.print) {
		config_print(&c, &text);
		fputs(gpuq_buf_str(&text), stdout);
		rc = EXIT_OK;
	} else if (c.check) {
		rc = daemon_check(&c);
	} else if (c.make_cert.n) {
		rc = make_cert(&c);
	} else if (c.audit) {
		rc = daemon_audit(&c);
	} else {
		log_set_level((enum log_level)log_level_parse(c.log_level));
		give_back();
		rc = daemon_run(&c, argc, argv);
	}
	gpuq_buf_done(&text);
	config_done(&c);
	return rc;
}
