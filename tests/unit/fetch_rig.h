/* fetch_rig.h - an issuer's server that answers when a test says so: in place of net/fetch.c
 *
 * Owns     the request under way, of which there is one. Touches memory only.
 * Used by  test_issuer.c, test_device.c.
 */
#ifndef TESTS_UNIT_FETCH_RIG_H
#define TESTS_UNIT_FETCH_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/net/fetch.h"

struct fetch {
	bool open;
	fetch_fn fn;
	void *arg;
	char url[256], form[512], login[256];
};

extern struct fetch rig_fetch;
extern unsigned rig_fetches; /* so far */

void rig_answer(long status, const char *body, int64_t max_age_us);
void rig_away(void);

#endif
