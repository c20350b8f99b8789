#include "gpuqd/base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int64_t clock_us(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void clock_boot_id(char out[40])
{
	const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd >= 0 ? read(fd, out, 39) : 0;

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

void clock_init(struct clock *c, const char *boot, const struct clock_reading *r)
{
	*c = (struct clock){ .base_us = r->wall_us - r->boot_us };
	snprintf(c->boot, sizeof(c->boot), "%s", boot);
	clock_read(c, r);
}

void clock_resume(struct clock *c, const struct clock *stored, int64_t newest_us, const char *boot,
		  const struct clock_reading *r)
{
	int64_t now_us = r->boot_us + stored->base_us;

	/* After another boot, or in a database that came from another machine. */
	if (!*boot || strcmp(boot, stored->boot) != 0)
		now_us = r->wall_us - stored->ahead_us;
	if (now_us < newest_us)
		now_us = newest_us;
	*c = (struct clock){ .base_us = now_us - r->boot_us, .ahead_us = stored->ahead_us };
	snprintf(c->boot, sizeof(c->boot), "%s", boot);
	clock_read(c, r);
}

void clock_read(struct clock *c, const struct clock_reading *r)
{
	const int64_t now_us = r->boot_us + c->base_us;

	c->now_us = now_us > c->now_us ? now_us : c->now_us;
	c->wall_us = r->wall_us;
	c->asleep_us = r->boot_us - r->mono_us;
}

int64_t clock_off_us(const struct clock *c)
{
	const int64_t off_us = c->wall_us - c->now_us - c->ahead_us;

	return llabs(off_us) >= CLOCK_SLACK_US ? off_us : 0;
}

void clock_step(struct clock *c, int64_t by_us)
{
	c->ahead_us += by_us;
	if (llabs(by_us) <= CLOCK_JUMP_US)
		return;
	c->n_jumps++;
	c->jump_us = by_us;
	c->jumped_at_us = c->now_us;
}
