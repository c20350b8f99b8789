/* Names of copies, which of them stay, manifests, and segments that are written and read. */
#include <criterion/criterion.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "gpuqd/flow/copies/manifest.h"
#include "gpuqd/flow/copies/names.h"
#include "gpuqd/flow/copies/target.h"
#include "gpuqd/net/s3_presign.h"
#include "gpuqd/net/s3.h"
#include "gpuqd/net/s3_xml.h"
#include "gpuqd/store/meta.h"
#include "gpuqd/store/segment.h"

#define NOW INT64_C(1795530127000000) /* 2026-11-24T14:22:07Z */
#define ID "0123456789abcdef0123456789abcdef"

Test(copies, names)
{
	char prefix[NAMES_PREFIX_BYTES], name[NAMES_BYTES];
	struct segment_name seg = { .store = "0123abcd", .span = { 3, 17, 19 } }, is;
	struct stamp s, t;

	names_prefix("0a0b0c0d", prefix);
	stamp_write(NOW, &s);
	names_copy(prefix, &s, name);
	cr_assert_str_eq(name, "gpuq-0a0b0c0d-20261124T142207Z.mdb");
	cr_assert(names_read_copy(prefix, name, &t));
	cr_expect_eq(stamp_us(&t), NOW);
	cr_expect_not(names_read_copy("gpuq-other-", name, &t));
	cr_expect_not(names_read_copy(prefix, "gpuq-0a0b0c0d-20261124T142207Z.mdb.sha256", &t));
	cr_expect_not(names_read_copy(prefix, "gpuq-0a0b0c0d-2026112xT142207Z.mdb", &t));
	seg.stamp = s;
	names_segment(prefix, &seg, name);
	cr_assert(names_read_segment(prefix, name, &is), "%s", name);
	cr_expect_eq(is.span.epoch, 3);
	cr_expect_eq(is.span.first, 17);
	cr_expect_eq(is.span.last, 19);
	cr_expect_str_eq(is.store, "0123abcd");
	name[strlen(name) - 5] = '8'; /* its last batch, with another number of digits behind it */
	cr_expect(names_read_segment(prefix, name, &is) && is.span.last == 18);
	name[strlen(name) - 1] = '\0';
	cr_expect_not(names_read_segment(prefix, name, &is));
}

/* stays("...") of copies "MMDDThh S", S the database. */
static void keeps(const char *const *at, size_t n, struct backup_keeps keep, size_t ours,
		  const char *want)
{
	struct names_copy all[16];
	bool stays[16];
	char store[16][2], got[17] = "";

	for (size_t i = 0; i < n; i++) {
		snprintf(all[i].stamp.text, sizeof(all[i].stamp.text), "2026%.7s0000Z", at[i]);
		snprintf(store[i], sizeof(store[i]), "%s", at[i] + 8);
		all[i].store = store[i];
	}
	names_keep(all, n, NOW, ours, &keep, stays);
	for (size_t i = 0; i < n; i++)
		got[i] = stays[i] ? '1' : '0';
	cr_expect_str_eq(got, want);
}

Test(copies, which_stay)
{
	static const char *const days[] = { "1124T14 a", "1124T14 a", "1124T13 a",
					    "1123T20 a", "1123T19 a", "1122T01 a" };
	static const char *const ahead[] = { "1225T00 a", "1124T14 a", "1124T13 a" };
	static const char *const restored[] = { "1124T14 b", "1124T14 a", "1124T14 b",
						"1124T13 a" };

	keeps(days, 6, (struct backup_keeps){ 1, 0, 0 }, 6, "100000");
	keeps(days, 6, (struct backup_keeps){ 2, 0, 0 }, 6, "101000");
	keeps(days, 6, (struct backup_keeps){ 1, 2, 0 }, 6, "100100");
	keeps(days, 6, (struct backup_keeps){ 1, 9, 0 }, 6, "100101");
	keeps(days, 6, (struct backup_keeps){ 1, 0, 0 }, 1, "110000");
	keeps(ahead, 3, (struct backup_keeps){ 1, 0, 0 }, 3, "110");
	keeps(restored, 4, (struct backup_keeps){ 2, 0, 0 }, 4, "1100");
	keeps(restored, 4, (struct backup_keeps){ 3, 0, 0 }, 4, "1101");
}

Test(copies, manifests)
{
	struct manifest m = { .file = "gpuq-a-20261124T142207Z.mdb",
			      .cluster = "a",
			      .id = { ID, 2, 1234, true },
			      .schema = 2,
			      .time_us = NOW,
			      .bytes = 4096 },
			is;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct gpuq_err err;

	memset(m.sha256, 'e', sizeof(m.sha256) - 1);
	manifest_write(&m, &text);
	cr_assert_eq(manifest_read(m.file, text.data, text.len, &is, &err), 0, "%s", err.text);
	cr_expect_eq(is.id.seq, 1234);
	cr_expect_eq(is.time_us, NOW);
	cr_expect_not(manifest_is_damaged(&is));
	/* Cut anywhere it is none. */
	for (size_t n = 0; n < text.len; n++)
		cr_expect_eq(manifest_read(m.file, text.data, n, &is, &err), GPUQ_ECORRUPT, "%zu",
			     n);
	cr_expect_eq(manifest_read("another", text.data, text.len, &is, &err), GPUQ_ECORRUPT);
	m.audited_us = NOW;
	snprintf(m.audit, sizeof(m.audit), "damaged: page 3");
	gpuq_buf_clear(&text);
	manifest_write(&m, &text);
	cr_assert_eq(manifest_read(m.file, text.data, text.len, &is, &err), 0);
	cr_expect(manifest_is_damaged(&is));
	cr_expect_str_eq(is.audit, "damaged: page 3");
	gpuq_buf_done(&text);
}

static int file_of(const struct gpuq_buf *b, size_t n)
{
	char path[] = "/tmp/gpuq-segment-XXXXXX";
	const int fd = mkstemp(path);

	cr_assert(fd >= 0 && write(fd, b->data, n) == (ssize_t)n);
	unlink(path);
	return fd;
}

static void add_batch(struct gpuq_buf *out, uint64_t seq)
{
	const struct segment_batch b = {
		.seq = seq, .at_us = NOW, .clear = N_TABLES, .sum = seq << 62
	};
	struct batch changes;

	change_batch_init(&changes);
	change_batch_put(&changes, TABLE_JOB, "key", 3, "value", 5);
	change_batch_put(&changes, TABLE_META, "gone", 4, NULL, 0);
	change_batch_put(&changes, TABLE_SPEC, "none", 4, "", 0);
	segment_batch_write(&b, &changes, out);
	change_batch_done(&changes);
}

static void make(struct gpuq_buf *out)
{
	const struct segment_head head = { STORE_SCHEMA, { ID, 2, 7, false }, NOW };
	unsigned char sha[DIGEST_BYTES];
	char hex[DIGEST_HEX_BYTES];
	int fd;

	segment_head_write(&head, out);
	add_batch(out, 7);
	add_batch(out, 8);
	segment_end_write(8, NOW, out);
	fd = file_of(out, out->len);
	cr_assert_eq(digest_file(fd, -1, hex, NULL, NULL), 0);
	close(fd);
	cr_assert_eq(digest_unhex(hex, sha), 0);
	gpuq_buf_add(out, sha, sizeof(sha));
}

/* Read it all; how many batches, or the error. */
static int read_all(const struct gpuq_buf *b, size_t n)
{
	struct segment_batch batch;
	struct batch changes;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct segment s;
	const int fd = file_of(b, n);
	int rc = segment_open(&s, fd, &err), k = 0, more = 0;

	change_batch_init(&changes);
	if (rc == 0)
		rc = segment_check(&s, &err);
	while (rc == 0 && (more = segment_next(&s, &batch, &err)) == 1) {
		rc = segment_changes(&batch, &changes, &err);
		k++;
	}
	if (rc == 0 && more == 0) {
		cr_assert_eq(changes.n, 6);
		cr_expect_eq(changes.items[0].val_len, 5);
		cr_expect_null(changes.items[1].val);
		cr_expect(changes.items[2].val && changes.items[2].val_len == 0);
	}
	change_batch_done(&changes);
	segment_close(&s);
	close(fd);
	return rc < 0 ? rc : more < 0 ? more : k;
}

Test(copies, segments)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	make(&b);
	cr_assert_eq(read_all(&b, b.len), 2);
	/* Cut anywhere, or with any byte changed, it is refused. */
	for (size_t n = 0; n < b.len; n++) {
		cr_expect_lt(read_all(&b, n), 0, "%zu", n);
		b.data[n] ^= 1;
		cr_expect_lt(read_all(&b, b.len), 0, "%zu", n);
		b.data[n] ^= 1;
	}
	gpuq_buf_done(&b);
}

Test(copies, reach)
{
	static const struct batchlog_span spans[] = {
		{ 1, 1, 4 }, { 1, 5, 5 }, { 2, 6, 9 }, { 1, 8, 9 }
	};

	cr_expect_eq(batchlog_reach(spans, 4, 1, 0), 5);
	cr_expect_eq(batchlog_reach(spans, 4, 1, 7), 9);
	cr_expect_eq(batchlog_reach(spans, 4, 2, 5), 9);
	cr_expect_eq(batchlog_reach(spans, 4, 3, 5), 5);
}

#ifdef GPUQ_FAILPOINTS
static void *put_main(void *arg)
{
	struct target *t = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const int rc = target_put(t, "gpuq-x-1.seg", fd, "", true, &err);

	close(fd);
	return rc == 0 ? NULL : arg;
}

/* How many unfinished files dir has. */
static int parts(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	for (const struct dirent *e; d && (e = readdir(d));)
		n += strstr(e->d_name, ".part") != NULL;
	if (d)
		closedir(d);
	return n;
}

/* The thread of the copies lists while that of the segments puts. */
Test(copies, a_list_leaves_what_is_being_put)
{
	char dir[] = "/tmp/gpuq-copies.XXXXXX", left[64];
	struct backup_plan plan = { .to = mkdtemp(dir) };
	struct target_list l = { .items = NULL };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct target *t;
	void *failed;
	pthread_t thread;

	setenv("GPUQ_FAILPOINT", "backup.put.part=delay:500", 1);
	cr_assert_eq(target_new(&plan, dir, NULL, &t, &err), 0);
	snprintf(left, sizeof(left), "%s/.gpuq-x-0.seg.0123456789abcdef.part", dir);
	close(open(left, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	cr_assert_eq(pthread_create(&thread, NULL, put_main, t), 0);
	while (parts(dir) < 2)
		usleep(1000);
	cr_assert_eq(target_list(t, "gpuq-x-", &l, &err), 0);
	cr_expect_eq(parts(dir), 1, "the leftover goes, the other one stays");
	target_list_done(&l);
	pthread_join(thread, &failed);
	cr_expect_null(failed);
	cr_expect_eq(target_remove(t, "gpuq-x-1.seg", &err), 0);
	target_free(t);
	cr_expect_eq(rmdir(dir), 0);
}
#endif

/* ---- object stores ---- */

Test(copies, s3_xml)
{
	static const char text[] =
		"<?xml version='1.0'?><R "
		"xmlns='x'><Contents><Key>a&amp;b</Key><Size>7</Size></Contents>"
		"<ContentsX><Key>no</Key></ContentsX><Contents a=\"1\"><Key/></Contents><Contents>";
	const struct s3_xml all = { text, sizeof(text) - 1 };
	struct s3_xml rest = all, in;
	char out[8];

	cr_assert(s3_xml_next(&rest, "Contents", &in));
	cr_expect(s3_xml_text(&in, "Key", out, sizeof(out)));
	cr_expect_str_eq(out, "a&b");
	cr_expect_not(s3_xml_text(&in, "Key", out, 3), "it has no room");
	cr_expect_str_eq(out, "");
	cr_assert(s3_xml_next(&rest, "Contents", &in));
	cr_expect(s3_xml_text(&in, "Key", out, sizeof(out)));
	cr_expect_str_eq(out, "");
	cr_expect_not(s3_xml_next(&rest, "Contents", &in), "it has no end");
	cr_expect_not(s3_xml_text(&all, "Absent", out, sizeof(out)));
}

Test(copies, s3_addresses)
{
	static const struct {
		const char *url;
		enum s3_style style;
		const char *prefix; /* NULL: it is none */
	} rows[] = {
		{ "https://h/b", S3_STYLE_PATH, "" },
		{ "https://h:9000/b/p/q", S3_STYLE_PATH, "p/q/" },
		{ "https://[::1]:9000/b/p", S3_STYLE_PATH, "p/" },
		{ "https://b.h", S3_STYLE_HOST, "" },
		{ "https://b.h/p/q", S3_STYLE_HOST, "p/q/" },
		{ "https://h", S3_STYLE_PATH, NULL },
		{ "https://u:p@h/b", S3_STYLE_PATH, NULL },
		{ "https://h/b/", S3_STYLE_PATH, NULL },
		{ "https://h/b/./c", S3_STYLE_PATH, NULL },
		{ "https://h/b c", S3_STYLE_PATH, NULL },
		{ "https://h#/b", S3_STYLE_PATH, NULL },
		{ "http://h/b", S3_STYLE_PATH, NULL },
	};

	setenv("AWS_ACCESS_KEY_ID", "k", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct s3_opts o = { .url = rows[i].url, .style = rows[i].style };
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct s3 *s = NULL;

		cr_expect_eq(s3_new(&o, &s, &err), rows[i].prefix ? 0 : GPUQ_EINVAL, "%s: %s",
			     rows[i].url, err.text);
		if (s)
			cr_expect_str_eq(s3_prefix(s), rows[i].prefix);
		s3_free(s);
	}
}

/* The example of Amazon's description, "Authenticating Requests: Using Query Parameters". */
Test(s3, an_address_is_signed_as_described)
{
	const struct s3_keys keys = { .id = "AKIAIOSFODNN7EXAMPLE",
				      .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" };
	struct gpuq_buf out = GPUQ_BUF_INIT;

	s3_presign_write(&(struct s3_presign){ .host = "examplebucket.s3.amazonaws.com",
					       .path = "/test.txt",
					       .region = "us-east-1",
					       .keys = &keys,
					       .now = 1369353600, /* 2013-05-24 */
					       .valid_s = 86400 },
			 &out);
	cr_assert_str_eq(
		gpuq_buf_str(&out),
		"https://examplebucket.s3.amazonaws.com/test.txt"
		"?X-Amz-Algorithm=AWS4-HMAC-SHA256"
		"&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_"
		"request"
		"&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
		"&X-Amz-Signature="
		"aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
	gpuq_buf_done(&out);
}
