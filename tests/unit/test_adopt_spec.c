#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/flow/adopt/adopt_spec.h"
#include "gpuqd/state/notes/jobnote.h"
#include "gpuqd/state/objects/origin.h"
#include "libgpuq/units.h"

#define POD(name, more, limits)                                                                    \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name                   \
	"\",\"namespace\":\"team\"},\"spec\":{\"containers\":[{\"image\":\"i\",\"name\":\"m\","    \
	"\"resources\":{\"limits\":{" limits "}}}]" more "}}"

static struct gpuq_arena mem;
static struct gpuq_buf warnings;

static struct adopt_fact fact(const char *name, const char *manifest)
{
	return (struct adopt_fact){ .namespace_ = "team",
				    .name = name,
				    .uid = gpuq_arena_printf(&mem, "uid-%s", name),
				    .owner_kind = "Job",
				    .owner_name = "train",
				    .owner_uid = "o",
				    .gang = "",
				    .manifest = manifest,
				    .n_manifest = strlen(manifest) };
}

Test(adopt_spec, pods_that_request_the_same_are_a_group)
{
	const struct adopt_fact a = fact("a", POD("a", "", "\"nvidia.com/gpu\":\"2\"")),
				b = fact("b", POD("b", "", "\"nvidia.com/gpu\":\"1\"")),
				c = fact("c", POD("c", "", "\"nvidia.com/gpu\":\"2\""));
	const struct adopt_fact *pods[] = { &c, &b, &a };
	struct origins *all = NULL;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_spec spec;
	size_t n, n_pods;
	const char *owner, *list;
	char *notes;

	cr_assert_eq(adopt_spec(&mem, pods, 3, 1, &spec, &warnings, &err), 0, "%s", err.text);
	cr_assert_eq(spec.n_groups, 2);
	cr_expect_eq(spec.groups[0].pods_min, 1);
	cr_expect_eq(spec.groups[1].pods_min, 2);
	cr_expect_eq(spec.groups[1].gpus_milli, 2000);
	cr_expect_str_eq(spec.name, "train");
	cr_expect(!spec.requeue);
	/* The notes of the job lead back to each. */
	notes = jobnote_take(&spec);
	owner = jobnote_find(notes, JOBNOTE_ORIGIN, &n);
	list = jobnote_find(notes, JOBNOTE_PODS, &n_pods);
	origin_add(&all, 7, owner, n, list, n_pods);
	cr_assert(origin_find(all, "uid-c"));
	cr_expect_eq(origin_find(all, "uid-b")->place, 0);
	cr_expect_eq(origin_find(all, "uid-c")->place, 2);
	cr_expect_str_eq(origin_find(all, "uid-c")->name, "c");
	cr_expect_str_eq(origin_of(all, 7)->namespace_, "team");
	/* Another job never takes a pod over. */
	origin_add(&all, 8, owner, n, list, n_pods);
	cr_expect_eq(origin_find(all, "uid-a")->of->job, 7);
	origin_drop(&all, 8);
	cr_expect_eq(origin_find(all, "uid-a")->of->job, 7);
	origin_drop(&all, 7);
	cr_expect_null(all);
	free(notes);
	gpuq_buf_done(&warnings);
	gpuq_arena_done(&mem);
}

/* A suspended owner stands for its first pod until that is there; EV_JOB_FILLED then replaces it in the notes. */
Test(adopt_spec, a_suspended_owner_stands_for_its_first_pod)
{
	struct adopt_fact f = fact("train", POD("train", "", "\"nvidia.com/gpu\":\"1\""));
	const struct adopt_fact *pods[] = { &f };
	struct origins *all = NULL;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_spec spec;
	size_t n, n_pods;
	const char *owner, *list;
	char *notes, *filled;

	f.gated = true;
	f.uid = f.owner_uid;
	cr_assert_eq(adopt_spec(&mem, pods, 1, 1, &spec, &warnings, &err), 0, "%s", err.text);
	spec.comment = "kept";
	notes = jobnote_take(&spec);
	owner = jobnote_find(notes, JOBNOTE_ORIGIN, &n);
	list = jobnote_find(notes, JOBNOTE_PODS, &n_pods);
	origin_add(&all, 7, owner, n, list, n_pods);
	cr_expect(origin_of(all, 7)->gated);
	cr_expect(origin_is_suspended(origin_of(all, 7)));
	origin_drop(&all, 7);
	filled = jobnote_with_pods(notes, "train-1 uid-1", strlen("train-1 uid-1"));
	owner = jobnote_find(filled, JOBNOTE_ORIGIN, &n);
	list = jobnote_find(filled, JOBNOTE_PODS, &n_pods);
	origin_add(&all, 7, owner, n, list, n_pods);
	cr_expect(origin_of(all, 7)->gated);
	cr_expect(!origin_is_suspended(origin_of(all, 7)));
	cr_expect_str_eq(origin_find(all, "uid-1")->name, "train-1");
	cr_expect(jobnote_find(filled, JOBNOTE_COMMENT, &n));
	origin_drop(&all, 7);
	/* Notes of before: the word may be missing. */
	origin_add(&all, 8, "Job train team uid", 18, "p uid-p", 7);
	cr_expect(!origin_of(all, 8)->gated);
	origin_drop(&all, 8);
	free(filled);
	free(notes);
	gpuq_buf_done(&warnings);
	gpuq_arena_done(&mem);
}

/* Once, where several kinds of pods have the same. */
Test(adopt_spec, what_is_ignored_is_named_for_each_kind_of_pod)
{
	const struct adopt_fact a = fact("a", POD("a", "", "\"cpu\":\"1\"")),
				b = fact("b", POD("b", ",\"priority\":7", "\"cpu\":\"2\"")),
				c = fact("c", POD("c", ",\"priority\":7", "\"cpu\":\"3\""));
	const struct adopt_fact *pods[] = { &a, &b, &c };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_spec spec;
	const char *first;

	cr_assert_eq(adopt_spec(&mem, pods, 3, 1, &spec, &warnings, &err), 0, "%s", err.text);
	cr_expect_eq(spec.n_groups, 3);
	first = strstr(gpuq_buf_str(&warnings), "priority");
	cr_assert(first, "%s", gpuq_buf_str(&warnings));
	cr_expect_null(strstr(first + 1, "spec.priority"), "%s", gpuq_buf_str(&warnings));
	gpuq_buf_done(&warnings);
	gpuq_arena_done(&mem);
}

static const struct {
	const char *manifest;
	bool sees;
	const char *says;
} refusals[] = {
	{ POD("a", "", "\"nvidia.com/gpu\":\"1\""), true, "NVIDIA_VISIBLE_DEVICES" },
	{ POD("a", "", "\"aliyun.com/gpu-mem\":\"4\""), false,
	  "aliyun.com/gpu-mem: it is the word of a system" },
	{ POD("a", "", "\"tencent.com/vcuda-core\":\"200\",\"tencent.com/vcuda-memory\":\"1\""),
	  false, "tencent.com/vcuda" },
	{ POD("a", "", "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"1000\""), false,
	  "gpumem" },
	{ POD("a", ",\"nodeSelector\":7", "\"cpu\":\"1\""), false, "nodeSelector" },
	{ "{\"kind\":", false, "" },
};

Test(adopt_spec, refusals_are_words_for_the_owner)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct adopt_fact f = fact("a", refusals[i].manifest);
		const struct adopt_fact *pods[] = { &f };
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_spec spec;

		f.sees_devices = refusals[i].sees;
		cr_expect_neq(adopt_spec(&mem, pods, 1, 1, &spec, &warnings, &err), 0, "%s",
			      refusals[i].manifest);
		cr_expect(strstr(err.text, refusals[i].says), "%s", err.text);
		cr_expect(strncmp(err.text, "pod/a:", 6) != 0, "%s", err.text);
	}
	gpuq_buf_done(&warnings);
	gpuq_arena_done(&mem);
}

Test(adopt_spec, a_pod_that_restarts_has_no_end)
{
	struct adopt_fact f = fact("a", POD("a", ",\"restartPolicy\":\"Always\"", "\"cpu\":\"1\""));
	const struct adopt_fact *pods[] = { &f };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_spec spec;

	cr_assert_eq(adopt_spec(&mem, pods, 1, 1, &spec, &warnings, &err), 0, "%s", err.text);
	cr_expect_eq(spec.time_us, GPUQ_UNLIMITED);
	cr_expect_null(strstr(gpuq_buf_str(&warnings), "restartPolicy"), "%s",
		       gpuq_buf_str(&warnings));
	f = fact("a", POD("a", ",\"restartPolicy\":\"OnFailure\",\"activeDeadlineSeconds\":60",
			  "\"cpu\":\"1\""));
	cr_assert_eq(adopt_spec(&mem, pods, 1, 1, &spec, &warnings, &err), 0, "%s", err.text);
	cr_expect_eq(spec.time_us, 60000000);
	cr_expect_eq(spec.retry.limit, 0);
	gpuq_buf_done(&warnings);
	gpuq_arena_done(&mem);
}
