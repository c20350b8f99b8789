/* Pages of metrics: what is believed of them, and that the rest does no harm. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/cluster/kube/metrics.h"
#include "gpuqd/cluster/kube/metrics_text.h"

#define NOW_US (INT64_C(1790000000) * 1000000)

static struct gpuq_buf told;

static void on_fact(void *arg, const struct use_fact *f)
{
	(void)arg;
	gpuq_buf_printf(&told, "%s|%s|%d|%u|%d", f->pod, f->uuid, f->index, f->part, f->milli);
	if (f->memory_bytes)
		gpuq_buf_printf(&told, "|%lld", (long long)f->memory_bytes);
	gpuq_buf_addc(&told, ';');
}

/* Parts are numbered as they come. */
static void on_amount(void *arg, const struct amount_fact *f)
{
	static uint64_t parts[8];
	size_t i = 0;

	(void)arg;
	while (i < 7 && parts[i] && parts[i] != f->part)
		i++;
	parts[i] = f->part;
	gpuq_buf_printf(&told, "%s/%s|%d|%zu|%lld;", f->namespace_, f->pod, (int)f->what, i,
			(long long)f->value);
}

/* Parse a page, in pieces of any size. */
static const char *read_page(const char *page)
{
	static struct gpuq_buf first;

	gpuq_buf_clear(&first);
	for (size_t piece = strlen(page) + 1; piece > 0;
	     piece = piece > 7 ? piece / 3 : piece - 1) {
		struct metrics_text t;

		gpuq_buf_clear(&told);
		metrics_text_init(&t, NOW_US, on_fact, NULL);
		t.amount = on_amount;
		for (size_t at = 0; at < strlen(page); at += piece) {
			const size_t left = strlen(page) - at;

			metrics_text_feed(&t, page + at, left < piece ? left : piece);
		}
		metrics_text_done(&t);
		if (piece == strlen(page) + 1)
			gpuq_buf_add(&first, told.data, told.len);
		cr_assert_str_eq(gpuq_buf_str(&told), gpuq_buf_str(&first), "in pieces of %zu",
				 piece);
	}
	return gpuq_buf_str(&first);
}

Test(metrics, an_exporter)
{
	cr_expect_str_eq(
		read_page("# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n"
			  "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
			  "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\","
			  "modelName=\"NVIDIA "
			  "A100\",Hostname=\"n1\",container=\"main\",namespace=\"lab\",pod=\"p-0\"}"
			  " 35\n"
			  "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-2\",Hostname=\"n1\"} 0\n"
			  "DCGM_FI_DEV_FB_USED{gpu=\"1\",UUID=\"GPU-2\",Hostname=\"n1\"} 12\n"),
		"p-0|GPU-1|0|0|350;|GPU-2|1|0|0;|GPU-2|1|0|-1|12582912;");
}

Test(metrics, kubelets_and_prometheus_tell_what_containers_use)
{
	cr_expect_str_eq(
		read_page("container_cpu_usage_seconds_total{container=\"main\",namespace=\"lab\","
			  "pod=\"p-0\"} 1.5 1790000000000\n"
			  "container_cpu_usage_seconds_total{container=\"\",namespace=\"lab\","
			  "pod=\"p-0\"} 7\n"
			  "container_cpu_usage_seconds_total{container=\"POD\",namespace=\"lab\","
			  "pod=\"p-0\"} 7\n"
			  "container_memory_working_set_bytes{exported_container=\"main\","
			  "container=\"kubelet\",exported_namespace=\"lab\",namespace=\"kube-"
			  "system\","
			  "exported_pod=\"p-0\",pod=\"x\"} 1.048576e+06\n"
			  "container_fs_writes_bytes_total{container=\"main\",device=\"/dev/sda\","
			  "namespace=\"lab\",pod=\"p-0\"} 10\n"
			  "container_fs_writes_bytes_total{container=\"main\",device=\"/dev/sdb\","
			  "namespace=\"lab\",pod=\"p-0\"} 20\n"
			  "container_fs_reads_bytes_total{container=\"main\",pod=\"p-0\"} -1\n"
			  "container_fs_reads_bytes_total{container=\"main\",pod=\"p-0\"} NaN\n"
			  "container_fs_reads_bytes_total{container=\"main\",pod=\"p-0\"} 1e300\n"
			  "container_cpu_user_seconds_total{container=\"main\",pod=\"p-0\"} 1 "
			  "1789999000000\n"
			  "pod_cpu_usage_seconds_total{namespace=\"lab\",pod=\"p-0\"} 9\n"),
		"lab/p-0|0|0|1500000;lab/p-0|3|0|1048576;lab/p-0|5|1|10;lab/p-0|5|2|20;");
}

Test(metrics, prometheus_names_the_pod_of_the_exporter_and_keeps_that_of_the_job)
{
	cr_expect_str_eq(read_page("DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=\"GPU-1\",pod=\"dcgm-x\","
				   "exported_pod=\"p-1\",GPU_I_ID=\"3\"} 0.25 1790000000000\n"),
			 "p-1|GPU-1|-1|4|250;");
}

Test(metrics, the_least_that_is_done_is_not_nothing)
{
	cr_expect_str_eq(read_page("DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=\"G\"} 0.000002\n"
				   "DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=\"G\"} 0.000000\n"
				   "DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=\"G\"} 1\n"),
			 "|G|-1|0|1;|G|-1|0|0;|G|-1|0|1000;");
}

Test(metrics, what_was_not_measured_is_not_0)
{
	cr_expect_str_eq(read_page("DCGM_FI_DEV_GPU_UTIL{UUID=\"G\"} NaN\n"
				   "DCGM_FI_DEV_GPU_UTIL{UUID=\"G\"} -1\n"
				   "DCGM_FI_DEV_GPU_UTIL{UUID=\"G\"} 9.223372036854776e+18\n"
				   "DCGM_FI_DEV_GPU_UTIL{UUID=\"G\"} +Inf\n"),
			 "|G|-1|0|-1;|G|-1|0|-1;|G|-1|0|-1;|G|-1|0|-1;");
}

/* Prometheus hands out what it last heard, and OpenMetrics counts in seconds. */
Test(metrics, old_values_say_nothing)
{
	cr_expect_str_eq(read_page("DCGM_FI_DEV_GPU_UTIL{UUID=\"A\"} 0 1789999880000\n"
				   "DCGM_FI_DEV_GPU_UTIL{UUID=\"B\"} 0 1789999879000\n"
				   "DCGM_FI_DEV_GPU_UTIL{UUID=\"C\"} 0 1789999990.5\n"
				   "DCGM_FI_DEV_GPU_UTIL{UUID=\"D\"} 0 1789990000.5 # {} 1\n"),
			 "|A|-1|0|0;|B|-1|0|-1;|C|-1|0|0;|D|-1|0|-1;");
}

Test(metrics, what_is_cut_off_is_not_believed)
{
	cr_expect_str_eq(read_page("DCGM_FI_DEV_GPU_UTIL{UUID=\"A\"} 1\n"
				   "DCGM_FI_DEV_GPU_UTIL{UUID=\"B\"} 10"),
			 "|A|-1|0|10;", "it may have been going to be 100");
}

Test(metrics, escapes_and_blanks)
{
	cr_expect_str_eq(
		read_page("  DCGM_FI_DEV_GPU_UTIL { UUID = \"a\\\"b\\\\c\\nd\" , gpu=\"2\",} "
			  "\t 50\r\n"),
		"", "a carriage return is no part of the form");
	cr_expect_str_eq(read_page("  DCGM_FI_DEV_GPU_UTIL { UUID = \"a\\\"b\\\\c\\nd\" , "
				   "gpu=\"2\",} \t 50\n"),
			 "|a\"b\\c\nd|2|0|500;");
}

Test(metrics, garbage)
{
	static const char *const pages[] = {
		"",
		"\n\n\n",
		"<html><body>404</body></html>\n",
		"DCGM_FI_DEV_GPU_UTIL\n",
		"DCGM_FI_DEV_GPU_UTIL 0\n",
		"DCGM_FI_DEV_GPU_UTIL{} 0\n",
		"DCGM_FI_DEV_GPU_UTIL{UUID=\"A\"}\n",
		"DCGM_FI_DEV_GPU_UTIL{UUID=\"A\"} x\n",
		"DCGM_FI_DEV_GPU_UTIL{UUID=\"A\"} 5%\n",
		"DCGM_FI_DEV_GPU_UTIL{UUID=\"A} 0\n",
		"DCGM_FI_DEV_GPU_UTIL{UUID=\"A\\\n",
		"DCGM_FI_DEV_GPU_UTIL{UUID=A} 0\n",
		"DCGM_FI_DEV_GPU_UTIL{UUID=\"A\" 0\n",
		"DCGM_FI_DEV_GPU_UTIL{=\"A\"} 0\n",
		"DCGM_FI_DEV_GPU_UTIL_OTHER{UUID=\"A\"} 0\n",
		"# DCGM_FI_DEV_GPU_UTIL{UUID=\"A\"} 0\n",
		"{\"status\":\"success\",\"data\":{}}\n",
	};

	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		cr_expect_str_eq(read_page(pages[i]), "", "%s", pages[i]);
}

Test(metrics, a_line_without_end_takes_no_memory_and_spoils_nothing_after_it)
{
	static const char next[] = "\nDCGM_FI_DEV_GPU_UTIL{UUID=\"A\"} 7\n";
	struct metrics_text t;
	char piece[4096];

	memset(piece, 'x', sizeof(piece));
	gpuq_buf_clear(&told);
	metrics_text_init(&t, NOW_US, on_fact, NULL);
	for (int i = 0; i < 1000; i++)
		metrics_text_feed(&t, piece, sizeof(piece));
	cr_expect_lt(t.line.room, 4 * METRICS_LINE_BYTES_MAX);
	metrics_text_feed(&t, next, sizeof(next) - 1);
	metrics_text_done(&t);
	cr_expect_str_eq(gpuq_buf_str(&told), "|A|-1|0|70;");
}

Test(metrics, bytes_that_are_no_text_spoil_their_line_alone)
{
	static const char page[] = "DCGM_FI_DEV_GPU_UTIL{UUID=\"A\"} 0\0 1\n"
				   "DCGM_FI_DEV_GPU_UTIL{UUID=\"B\"} 2\n";
	struct metrics_text t;

	gpuq_buf_clear(&told);
	metrics_text_init(&t, NOW_US, on_fact, NULL);
	metrics_text_feed(&t, page, sizeof(page) - 1);
	metrics_text_done(&t);
	cr_expect_str_eq(gpuq_buf_str(&told), "|B|-1|0|20;");
}

Test(metrics, urls)
{
	static const char *const good[] = { "http://a", "http://a:9400/metrics", "https://a/x?y=z",
					    "http://[::1]:9400/metrics" };
	static const char *const bad[] = { "",           "a",
					   "ftp://a/",   "http://",
					   "http:///x",  "http://a/ b",
					   "http://a#b", "http://u:p@a/",
					   "http://a?x" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_expect_eq(metrics_url_check(good[i], NULL), 0, "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_lt(metrics_url_check(bad[i], NULL), 0, "%s", bad[i]);
}
