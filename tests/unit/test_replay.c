/* A cycle as bytes: what is read back is what was written, and decides the same. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/sched/cycle_record.h"
#include "gpuqd/sched/sched.h"
#include "gpuqd/snapshot/snapshot_pack.h"
#include "gpuqd/sim/replay.h"

static const char *label_keys[] = { "zone", "rack" }, *label_vals[] = { "z1", "r7" };
static const char *const levels[] = { "zone", "rack" };
static const char *names[] = { "n1", "n2" };
static const char *flavors[] = { "a100", "h100" };

static void add_queue(struct snapshot *s, const char *name, const char *parent, int64_t quota)
{
	struct snap_share shares[4];
	struct snap_queue q;

	for (int i = 0; i < 4; i++)
		snapshot_share_default(&shares[i]);
	shares[0].quota = quota;
	shares[0].lend = 3000;
	snapshot_queue_default(&q);
	q.name = name;
	q.parent_name = parent;
	q.shares = shares;
	q.weight_milli = 1500;
	q.n_claims_hour = 2;
	q.reclaim_min_runtime_us = 1000000;
	snapshot_add_queue(s, &q);
}

static void add_node(struct snapshot *s, const char *name)
{
	static const uint8_t links[] = { 0, 2, 2, 1, 2, 0, 1, 2, 2, 1, 0, 2, 1, 2, 2, 0 };
	static const uint8_t numa[] = { 0, 0, 1, 1 };
	static const struct snap_taint taint = { "gpu", "yes", "NoSchedule" };
	struct snap_device devices[4] = {
		{ .healthy = true, .memory_bytes = 80, .foreign_memory_bytes = 8 },
		{ .healthy = true, .foreign_milli = 500 },
		{ .healthy = true, .serves = SNAP_SERVES_WHOLE },
		{ .healthy = false }
	};
	struct snap_node n;

	snapshot_node_default(&n);
	n.name = name;
	n.pool = "dgx";
	n.flavor = 0;
	n.n_devices = 4;
	n.devices_in = devices;
	n.links = links;
	n.numa = numa;
	n.cpu_milli = 64000;
	n.foreign_pods = 3;
	n.labels = (struct gpuq_strmap){ label_keys, label_vals, 2 };
	n.taints = &taint;
	n.n_taints = 1;
	snapshot_add_node(s, &n);
}

static uint32_t add_request(struct snapshot *s, int64_t gpus_milli, const uint32_t *other)
{
	struct gpuq_require match = { .key = "rack", .op = 0, .values = { names, 2 } };
	struct gpuq_term term = { .weight = 7, .all = &match, .n = 1 };
	struct gpuq_toleration toleration = { .key = "gpu",
					      .exists = true,
					      .effect = "NoSchedule" };
	const struct gpuq_slice slice = { "rack", 1 };
	const struct snap_group groups[] = {
		{ .name = "worker",
		  .pods_min = 1,
		  .pods_max = 3,
		  .gpus_milli = gpus_milli,
		  .cpu_milli = 2000,
		  .preferred = &term,
		  .n_preferred = 1,
		  .tolerations = &toleration,
		  .n_tolerations = 1,
		  .exclude = { names + 1, 1 },
		  .topology_preferred = "rack",
		  .slices = &slice,
		  .n_slices = 1 },
	};
	const struct snap_license_need need = { 0, 2 };
	const struct snap_request r = { .groups = groups,
					.n_groups = 1,
					.flavors = flavors,
					.n_flavors = 2,
					.licenses = &need,
					.n_licenses = 1,
					.others = other,
					.n_others = other ? 1 : 0,
					.in_order = other != NULL };

	return snapshot_add_request(s, &r);
}

/* Something of everything. */
static struct snapshot *sample(void)
{
	static const struct snap_range ranges[] = { { 0, 8, 2 }, { 20, 29, 1 } };
	static const uint32_t held[] = { 0 }, promised[] = { 2 }, excluded[] = { 1 };
	struct snap_alloc a = { .devices = held,
				.n_devices = 1,
				.milli = 1000,
				.shares = true,
				.stays = true,
				.charge_milli = 1000 };
	const struct snap_reservation demo = { .name = "demo",
					       .start_us = INT64_C(1800000000000000),
					       .end_us = INT64_C(1800000001000000),
					       .gpus_milli = 2000,
					       .release_us = 60000000,
					       .flavor = 0,
					       .queue = 1,
					       .users = held,
					       .n_users = 1 };
	struct snap_config config;
	struct snap_job j;
	struct snapshot *s;
	uint32_t other;

	snapshot_config_default(&config);
	config.now_us = INT64_C(1700000000000000);
	config.levels = levels;
	config.n_levels = 2;
	config.usage_k_milli = 1000;
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "a100", 0);
	snapshot_add_flavor(s, "h100", 1);
	snapshot_add_license(s, "matlab", 10);
	snapshot_user(s, "ann");
	snapshot_user(s, "bob");
	add_queue(s, "top", NULL, SNAP_AUTO);
	add_queue(s, "child", "top", 2000);
	add_node(s, "n2");
	add_node(s, "n1");
	snapshot_set_rate(s, 1, 2000);
	snapshot_add_usage(s, 1, 1, 12345);
	snapshot_add_reservation(s, &demo);
	snapshot_job_default(&j);
	other = add_request(s, 2000, NULL);
	j.request = add_request(s, 1000, &other);
	j.queue = 1;
	for (uint32_t id = 1; id <= 4; id++) {
		j.key.id = id;
		j.user = id % 2;
		j.state = id == 1 ? SNAP_RUNNING : SNAP_PENDING;
		j.start_us = id == 1 ? config.now_us - 5000000 : 0;
		j.checkpoint_us = id == 1 ? config.now_us - 1000000 : 0;
		j.ranges = id == 3 ? ranges : NULL;
		j.n_ranges = id == 3 ? 2 : 0;
		j.throttle = id == 3 ? 2 : 0;
		j.exclude = id == 2 ? excluded : NULL;
		j.n_exclude = id == 2;
		j.gate = id == 4 ? GPUQ_R_DEPENDENCY : GPUQ_R_NONE;
		j.gate_object = id == 4 ? "afterok:1" : NULL;
		j.evicted_us = id == 2 ? 77 : 0;
		j.evicted_for = id == 2 ? 0 : SNAP_NONE;
		j.n_evicted_day = id == 2;
		snapshot_add_job(s, &j);
	}
	snapshot_add_alloc(s, &a);
	a.job = 1;
	a.node = 1;
	a.devices = promised;
	snapshot_add_promise(s, &a);
	return s;
}

static struct snapshot *unpack(const struct gpuq_buf *bytes)
{
	struct rec r = { (const unsigned char *)bytes->data,
			 (const unsigned char *)bytes->data + bytes->len, false };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = NULL;

	cr_assert_eq(snapshot_unpack(&r, &s, &err), 0, "%s", err.text);
	cr_assert_eq(r.p, r.end, "all of it was read");
	return s;
}

static void decide(struct snapshot *s, struct gpuq_buf *text)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct plan plan;

	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(s, &mem, &plan, &err), 0, "%s", err.text);
	cycle_text(s, &plan, text);
	gpuq_arena_done(&mem);
	snapshot_free(s);
}

/* A field that is not written would be lost without a word. Whoever adds one appends it to
 * its table in snapshot_pack.c (or knows that sealing derives it), and corrects the size. Keys of the site
 * have rows of their own: test_keys. */
Test(replay, every_field_is_written)
{
#if defined(__x86_64__)
	static const struct {
		const char *table;
		size_t is, was;
	} rows[] = {
		{ "config_cols", sizeof(struct snap_config) - sizeof(struct policy_sched), 128 },
		{ "queue_cols", sizeof(struct snap_queue) - sizeof(struct policy_queue), 136 },
		{ "node_cols", sizeof(struct snap_node), 336 },
		{ "device_cols", sizeof(struct snap_device), 40 },
		{ "group_cols", sizeof(struct snap_group), 248 },
		{ "request_cols", sizeof(struct snap_request), 160 },
		{ "job_cols", sizeof(struct snap_job), 328 },
		{ "cap_cols", sizeof(struct snap_cap), 48 },
		{ "alloc_cols", sizeof(struct snap_alloc), 64 },
		{ "flavor_cols", sizeof(struct snap_flavor), 72 },
		{ "usage_cols", sizeof(struct snap_usage), 16 },
		{ "loss_cols", sizeof(struct snap_loss), 32 },
		{ "reservation_cols", sizeof(struct snap_reservation), 104 },
		{ "share_cols", sizeof(struct snap_share), 32 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(rows[i].is, rows[i].was,
			     "%s: the struct has %zu bytes, and had %zu when its table was written",
			     rows[i].table, rows[i].is, rows[i].was);
#endif
}

Test(replay, a_snapshot_comes_back_as_it_was)
{
	struct gpuq_buf first = GPUQ_BUF_INIT, again = GPUQ_BUF_INIT;
	struct gpuq_buf one = GPUQ_BUF_INIT, other = GPUQ_BUF_INIT;
	struct snapshot *s = sample(), *back;

	snapshot_pack(s, &first);
	back = unpack(&first);
	snapshot_pack(back, &again);
	cr_assert_eq(first.len, again.len);
	cr_expect_eq(memcmp(first.data, again.data, first.len), 0, "written again it is the same");
	cr_expect(back->requests[back->jobs[0].request].in_order);
	decide(s, &one);
	decide(back, &other);
	cr_expect_str_eq(gpuq_buf_str(&one), gpuq_buf_str(&other));
	cr_expect(strstr(gpuq_buf_str(&one), "place "), "it decides something: %s",
		  gpuq_buf_str(&one));
	gpuq_buf_done(&first);
	gpuq_buf_done(&again);
	gpuq_buf_done(&one);
	gpuq_buf_done(&other);
}

/* One job, and a node that its pool does not request now. */
static struct snapshot *made_up(bool told)
{
	struct snapshot *s;
	struct snap_config config;
	struct snap_device device = { .healthy = true };
	struct snap_node n;
	struct snap_job j;
	const struct snap_group group = {
		.name = "main", .pods_min = 1, .pods_max = 1, .gpus_milli = 1000
	};
	const struct snap_request r = { .groups = &group, .n_groups = 1 };

	snapshot_config_default(&config);
	config.now_us = INT64_C(1700000000000000);
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "a100", 0);
	snapshot_add_flavor(s, "h100", 1);
	snapshot_set_grows(s, 0);
	add_queue(s, "top", NULL, 0);
	snapshot_user(s, "ann");
	snapshot_node_default(&n);
	n.name = "p/0";
	n.pool = "p";
	n.flavor = 0;
	n.n_devices = 1;
	n.devices_in = &device;
	n.state = SNAP_DOWN;
	n.made_up = told;
	n.closed = true;
	n.max_asks = 100;
	n.run_us = 3600000000;
	n.lasts = n.cuts = true;
	snapshot_add_node(s, &n);
	snapshot_job_default(&j);
	j.key.id = 1;
	j.queue = j.user = 0;
	j.request = snapshot_add_request(s, &r);
	snapshot_add_job(s, &j);
	return s;
}

/* told: false = as records were before they said which nodes do not exist. */
static void decided_again(bool told)
{
	struct gpuq_buf bytes = GPUQ_BUF_INIT, one = GPUQ_BUF_INIT, other = GPUQ_BUF_INIT;
	struct snapshot *s = made_up(told), *back;

	snapshot_pack(s, &bytes);
	snapshot_free(s);
	back = unpack(&bytes);
	cr_assert_eq(back->nodes[0].run_us, 3600000000);
	cr_assert(back->flavors[0].grows && !back->flavors[1].grows);
	cr_assert(back->nodes[0].lasts && back->nodes[0].cuts);
	decide(made_up(true), &one);
	decide(back, &other);
	cr_expect(strstr(gpuq_buf_str(&one), "wait 1 ProvisioningFailed p"), "%s",
		  gpuq_buf_str(&one));
	cr_expect_str_eq(gpuq_buf_str(&one), gpuq_buf_str(&other));
	gpuq_buf_done(&bytes);
	gpuq_buf_done(&one);
	gpuq_buf_done(&other);
}

Test(replay, nodes_that_do_not_exist_are_recorded)
{
	decided_again(true);
	decided_again(false);
}

/* Every beginning of the bytes, and every byte turned over, is read or refused. */
Test(replay, bytes_from_anywhere_are_read_or_refused)
{
	struct gpuq_buf bytes = GPUQ_BUF_INIT, text = GPUQ_BUF_INIT;
	struct snapshot *s = sample();
	unsigned n_read = 0;

	snapshot_pack(s, &bytes);
	snapshot_free(s);
	for (size_t i = 0; i < bytes.len; i++) {
		const unsigned char *p = (const unsigned char *)bytes.data;
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct rec cut = { p, p + i, false }, turned = { p, p + bytes.len, false };

		cr_expect_eq(snapshot_unpack(&cut, &s, &err), GPUQ_ECORRUPT, "cut at %zu", i);
		bytes.data[i] = (char)~bytes.data[i];
		err = (struct gpuq_err)GPUQ_ERR_INIT;
		if (snapshot_unpack(&turned, &s, &err) == 0) {
			n_read++;
			if (snapshot_seal(s, &err) < 0)
				cr_expect_neq(err.text[0], '\0');
			snapshot_free(s);
		} else {
			cr_expect_neq(err.text[0], '\0');
		}
		bytes.data[i] = (char)~bytes.data[i];
	}
	cr_expect_gt(n_read, 0, "some turned bytes are in numbers and names");
	gpuq_buf_done(&bytes);
	gpuq_buf_done(&text);
}

static void write_record(struct gpuq_buf *out, uint64_t number, const char *more)
{
	struct gpuq_buf packed = GPUQ_BUF_INIT, text = GPUQ_BUF_INIT;
	struct snapshot *s = sample();

	snapshot_pack(s, &packed);
	decide(s, &text);
	gpuq_buf_adds(&text, more);
	cycle_record_write(out, "0.1.0", number, &packed, gpuq_buf_str(&text), text.len);
	gpuq_buf_done(&packed);
	gpuq_buf_done(&text);
}

Test(replay, a_file_of_records)
{
	struct gpuq_buf file = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct replay r = { 0 };
	size_t len;

	write_record(&file, 1, "");
	write_record(&file, 2, "place 99 on n9[0]\n");
	write_record(&file, 3, "");
	cr_expect_eq(replay_bytes(&r, "f", file.data, file.len, &err), 0, "%s", err.text);
	cr_expect_eq(r.n_same, 2);
	cr_expect_eq(r.n_different, 1);
	/* A daemon that was killed leaves half a record at the end. */
	len = file.len;
	write_record(&file, 4, "");
	r = (struct replay){ 0 };
	cr_expect_eq(replay_bytes(&r, "f", file.data, len + 20, &err), GPUQ_ECORRUPT);
	cr_expect(strstr(err.text, "f: record 4"), "%s", err.text);
	cr_expect_eq(r.n_same + r.n_different, 3, "those before it count");
	gpuq_buf_done(&file);
}

Test(replay, what_is_no_record_is_refused_by_name)
{
	static const struct {
		const char *bytes;
		size_t n;
		int rc;
		const char *part;
	} rows[] = {
		{ "version: 1\n", 11, GPUQ_ECORRUPT, "record_dir" },
		{ "\x96\xaagpuq-cycle\x02\xa1x\x01\x90\xa0", 17, GPUQ_EVERSION, "version 2" },
		{ "\x96\xaagpuq-cycle\x01\xa1x\x01\x90\xa0", 17, GPUQ_ECORRUPT, "incomplete" },
		{ "\x90", 1, GPUQ_ECORRUPT, "expected" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct replay r = { 0 };

		cr_expect_eq(replay_bytes(&r, "f", rows[i].bytes, rows[i].n, &err), rows[i].rc,
			     "row %zu", i);
		cr_expect(strstr(err.text, rows[i].part), "row %zu: %s", i, err.text);
	}
}
