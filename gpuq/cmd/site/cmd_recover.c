/* gpuq recover: what a restore from a backup has left open, and its end. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/lines.h"
#include "gpuq/out.h"
#include "gpuq/term.h"
#include "gpuq/view.h"

static void print_line(const struct gpuq_buf *line)
{
	struct gpuq_buf clean = GPUQ_BUF_INIT, raw = *line;

	term_clean_str(&clean, gpuq_buf_str(&raw));
	printf("%s\n", gpuq_buf_str(&clean));
	gpuq_buf_done(&clean);
}

static void print_job(const struct gpuq_val *j, const char *why, const char *what)
{
	struct gpuq_buf line = GPUQ_BUF_INIT;

	if (strcmp(gpuq_get_str(j, "why", ""), why) != 0)
		return;
	gpuq_buf_printf(&line, "Job %s (%s of %s in queue %s): %s", gpuq_get_str(j, "job", "?"),
			gpuq_get_str(j, "name", "?"), gpuq_get_str(j, "user", "?"),
			gpuq_get_str(j, "queue", "?"), what);
	print_line(&line);
	gpuq_buf_done(&line);
}

static void print_pod(const struct gpuq_val *p)
{
	struct gpuq_buf line = GPUQ_BUF_INIT;

	gpuq_buf_printf(&line, "Pod %s on %s", gpuq_get_str(p, "name", "?"),
			gpuq_get_str(p, "node", "no node"));
	if (gpuq_get_str(p, "user", NULL))
		gpuq_buf_printf(&line, " of %s", gpuq_get_str(p, "user", ""));
	gpuq_buf_printf(&line, ": kept; %s", gpuq_get_str(p, "why", ""));
	print_line(&line);
	gpuq_buf_done(&line);
}

static void print_more(const struct gpuq_val *reply, const char *list, const char *count)
{
	const struct gpuq_val *named = gpuq_get(reply, list);
	const int64_t n = gpuq_get_int(reply, count, 0), shown = named ? named->n : 0;

	if (n > shown)
		printf("... and %" PRId64 " more %s\n", n - shown, list);
}

static void print_state(const struct gpuq_val *r)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	const int64_t adopted = gpuq_get_int(r, "adopted", 0);

	if (!r || r->type != GPUQ_MAP) {
		puts("Nothing is being recovered");
		return;
	}
	view_time(&text, gpuq_get(r, "since"));
	printf("Recovering since %s: ", gpuq_buf_str(&text));
	if (gpuq_get_bool(r, "listed", false))
		printf("%" PRId64 " job%s adopted, %" PRId64 " unknown\n", adopted, line_s(adopted),
		       gpuq_get_int(r, "unknown", 0));
	else
		puts("the cluster has not been listed yet, nothing is started or removed");
	gpuq_buf_done(&text);
}

static void print_open(const struct gpuq_val *reply)
{
	const struct gpuq_val *jobs = gpuq_get(reply, "jobs"), *pods = gpuq_get(reply, "pods");

	print_state(gpuq_get(reply, "recovering"));
	for (uint32_t i = 0; jobs && jobs->type == GPUQ_LIST && i < jobs->n; i++)
		print_job(jobs->items[i], "held",
			  "held, it may have ended; gpuq release or gpuq cancel decides");
	for (uint32_t i = 0; pods && pods->type == GPUQ_LIST && i < pods->n; i++)
		print_pod(pods->items[i]);
	for (uint32_t i = 0; jobs && jobs->type == GPUQ_LIST && i < jobs->n; i++)
		print_job(jobs->items[i], "recovered",
			  "recovered from its pods, which keep running");
	print_more(reply, "jobs", "n_jobs");
	print_more(reply, "pods", "n_pods");
}

int cmd_recover(struct cli *c)
{
	const bool finish = opt_given(&c->args, OPT_FINISH);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *reply;

	if (cli_call(c, finish ? "recover.finish" : "recover.get", NULL, finish ? NULL : "", &reply,
		     &err) < 0)
		return cli_fail(&err, false);
	if (opt_given(&c->args, OPT_JSON))
		return out_json(reply) < 0 ? EXIT_REFUSED : EXIT_DONE;
	if (finish)
		puts("Finished the recovery");
	else
		print_open(reply);
	return EXIT_DONE;
}
