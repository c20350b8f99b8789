/* kubelet_status.h - the status texts that a node's agent writes */
#ifndef FAKEKUBE_KUBELET_STATUS_H
#define FAKEKUBE_KUBELET_STATUS_H

#include "version.h"

struct pod_status {
	enum phase phase;
	const char *pod_ip, *host_ip;
	int64_t started_us, ended_us; /* 0: not yet */
	int exit_code;
	/* Why terminated (Completed, Error, OOMKilled) or waiting (ImagePullBackOff). */
	const char *container_reason;
	const char *reason, *message; /* of the pod, or NULL */
};

/* Phase stands first and podIP is spelt as version.c looks for it. */
void kubelet_status_text(struct buf *b, const struct facts *f, const struct pod_status *s);

#endif
