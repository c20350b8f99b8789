/* gpuq submit: put jobs in a queue. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cmd/job/attend.h"
#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/job.h"
#include "gpuq/out.h"
#include "gpuq/cmd/job/submission.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/limits.h"

static void print_spec(struct gpuq_val *spec, bool yaml, bool more)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;

	if (more)
		puts("---");
	if (yaml)
		gpuq_yaml_write(&text, spec);
	else
		gpuq_json_write(&text, spec, 0);
	fputs(gpuq_buf_str(&text), stdout);
	if (text.len && text.data[text.len - 1] != '\n')
		putchar('\n');
	gpuq_buf_done(&text);
}

static void print_plan(const struct gpuq_val *job)
{
	const struct gpuq_val *spec = gpuq_get(job, "spec");
	const int64_t devices = gpuq_get_int(spec, "gpus", 0);
	struct gpuq_buf text = GPUQ_BUF_INIT, clean = GPUQ_BUF_INIT;

	gpuq_buf_printf(&text, "Would submit %s to queue %s: pods=%" PRId64 " gpus=",
			gpuq_get_str(job, "name", "?"), gpuq_get_str(job, "queue", "?"),
			gpuq_get_int(job, "pod_count", 1));
	/* How much of a device an amount of memory is depends on the device. */
	if (devices > 0 && gpuq_get(spec, "gpu_memory") && !gpuq_get(spec, "mig"))
		gpuq_buf_printf(&text, devices > 1 ? "%s of each of %" PRId64 : "%s of %" PRId64,
				gpuq_get_str(spec, "gpu_memory", "?"), devices);
	else
		view_cell(&text, gpuq_get(job, "gpus"));
	if (gpuq_get_str(gpuq_get(job, "array"), "indices", NULL))
		gpuq_buf_printf(&text, " array=%s",
				gpuq_get_str(gpuq_get(job, "array"), "indices", ""));
	term_clean_str(&clean, gpuq_buf_str(&text));
	puts(gpuq_buf_str(&clean));
	gpuq_buf_done(&text);
	gpuq_buf_done(&clean);
}

static void print_dry(const struct cli *c, const struct submission *s, const char *form)
{
	for (size_t i = 0; i < s->jobs->n; i++) {
		struct gpuq_val *spec = gpuq_get(s->jobs->items[i], "spec");

		/* The context of the submission is not part of a job file. */
		if (spec)
			gpuq_unset(spec, "context");
		/* Nor is the archive, which was not sent. */
		if (gpuq_get_str(gpuq_get(spec, "code"), "digest", NULL))
			gpuq_set(&((struct cli *)(uintptr_t)c)->arena, spec, "code",
				 gpuq_get(gpuq_get(spec, "code"), "dir"));
		if (opt_given(&c->args, OPT_JSON))
			out_json(s->jobs->items[i]);
		else if (form && spec)
			print_spec(spec, strcmp(form, "yaml") == 0, i > 0 && form[0] == 'y');
		else
			print_plan(s->jobs->items[i]);
	}
}

static int print_one(void *arg, const struct gpuq_val *job)
{
	(void)arg;
	return out_json(job) < 0 ? GPUQ_ENOMEM : 1; /* of an array the whole, which is first */
}

/* The server answers for many jobs with their ids alone. */
static void print_object(struct cli *c, const struct gpuq_val *job)
{
	struct gpuq_err err;

	if (gpuq_get(job, "state"))
		out_json(job);
	else if (job_for_each(c, gpuq_get_int(job, "id", 0), -1, print_one, NULL, &err) < 0)
		cli_say("%s", err.text);
}

static void print_taken(struct cli *c, const struct submission *s)
{
	for (size_t i = 0; i < s->jobs->n; i++) {
		const struct gpuq_val *job = s->jobs->items[i];

		if (opt_given(&c->args, OPT_JSON)) {
			/* With --wait the object is printed when the job has ended. */
			if (!opt_given(&c->args, OPT_WAIT))
				print_object(c, job);
		} else {
			printf("%s%" PRId64 "\n",
			       opt_given(&c->args, OPT_PARSABLE) ? "" : "Submitted job ",
			       gpuq_get_int(job, "id", 0));
		}
	}
	fflush(stdout);
}

/* Take the options of the script's own lines. */
static void take_asks(struct cli *c, unsigned asks)
{
	if (asks & GPUQ_ASK_WAIT)
		c->args.val[OPT_WAIT] = "";
	if (asks & GPUQ_ASK_PARSABLE)
		c->args.val[OPT_PARSABLE] = "";
	if (asks & GPUQ_ASK_TEST_ONLY)
		c->args.val[OPT_DRY_RUN] = "";
}

int submission_go(struct cli *c, struct submission *s)
{
	struct attend t = { .n_targets = 0 };
	const char *form, *key;
	bool dry_run;
	int code;

	take_asks(c, s->specs.asks);
	dry_run = opt_given(&c->args, OPT_DRY_RUN);
	form = c->args.val[OPT_OUTPUT];
	key = c->args.val[OPT_KEY];
	if (key && (!*key || strlen(key) > GPUQ_KEY_BYTES_MAX))
		return cli_usage(c, "--key: expected 1 to %u bytes", GPUQ_KEY_BYTES_MAX);
	if (!attend_options(c, &t, &code))
		return code;
	if (!opt_given(&c->args, OPT_WAIT) &&
	    (t.timeout_us || t.start_timeout_us || opt_given(&c->args, OPT_KEEP)))
		return cli_usage(c, "--timeout, --start-timeout and --keep go with --wait");
	code = submission_send(c, s, dry_run);
	if (code >= 0)
		return code;
	if (dry_run) {
		print_dry(c, s, form);
		return EXIT_DONE;
	}
	print_taken(c, s);
	if (!opt_given(&c->args, OPT_WAIT))
		return EXIT_DONE;
	t.targets = submission_targets(c, s, &t.n_targets);
	if (!t.targets) {
		cli_say("out of memory");
		return EXIT_SERVER;
	}
	t.keep = opt_given(&c->args, OPT_KEEP);
	t.json = opt_given(&c->args, OPT_JSON);
	return attend(c, &t);
}

int cmd_submit(struct cli *c)
{
	struct submission s = { .jobs = NULL };
	const int code = submission_read(c, &s);

	return code >= 0 ? code : submission_go(c, &s);
}
