/* model_rig.h - a model without a daemon: records in memory, events in one line */
#ifndef TESTS_UNIT_MODEL_RIG_H
#define TESTS_UNIT_MODEL_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/model.h"
#include "libgpuq/units.h"

#define T0 (INT64_C(1700000000) * GPUQ_US_PER_S)
#define CLUSTER "0123abcd"
static const struct job_key J1 __attribute__((unused)) = { 1, -1 };

/* ---- a store in memory ---- */

struct record {
	enum table table;
	size_t key_len, val_len;
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	unsigned char *val;
};

struct disk {
	struct record *r;
	size_t n;
};

void disk_write(struct disk *d, struct model *m);
struct model *disk_load(struct disk *d);
bool disk_has(const struct disk *d, enum table t, uint32_t id, int64_t index);
void disk_free(struct disk *d);
struct model *fresh(int n_nodes, int n_devices);
void rig_site(struct model *m, const char *text); /* YAML; at T0 */
const char *submit_text(struct model *m, const char *text, const char *key);
int place(struct model *m, struct job_key key, uint32_t n_pods, const char *node, uint16_t device);
int place_at(struct model *m, struct job_key key, uint32_t n_pods, const char *node,
	     uint16_t device, int64_t at_us);
int pod_event(struct model *m, enum event_type t, struct job_key key, uint32_t attempt,
	      uint32_t index, int64_t at_us, int exit_code, enum pod_fault fault);
int verdict(struct model *m, struct job_key key, int64_t at_us, enum event_type *type);

#endif
