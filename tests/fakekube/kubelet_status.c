#include "kubelet_status.h"

#include <string.h>

static void add_conditions(struct buf *b, const struct facts *f, const struct pod_status *s,
			   const char *since)
{
	const bool ready = s->phase == PHASE_RUNNING;
	const struct {
		const char *type;
		bool is;
	} conditions[] = {
		{ "PodReadyToStartContainers", ready },
		{ "Initialized", s->started_us != 0 },
		{ "Ready", ready },
		{ "ContainersReady", ready },
		{ "PodScheduled", true },
	};

	buf_adds(b, ",\"conditions\":[");
	for (size_t i = 0; i < ARRAY_LEN(conditions); i++)
		buf_addf(b,
			 "%s{\"type\":\"%s\",\"status\":\"%s\",\"lastProbeTime\":null,"
			 "\"lastTransitionTime\":\"%s\"%s}",
			 i ? "," : "", conditions[i].type, conditions[i].is ? "True" : "False",
			 since,
			 s->phase == PHASE_SUCCEEDED && !conditions[i].is
				 ? ",\"reason\":\"PodCompleted\""
				 : "");
	buf_adds(b, f->pod.more_conditions);
	buf_adds(b, "]");
}

static void add_container(struct buf *b, const struct facts *f, size_t i,
			  const struct pod_status *s)
{
	const struct container *c = &f->pod.containers[i];
	char started[TIME_TEXT_SIZE], ended[TIME_TEXT_SIZE];
	const bool running = s->phase == PHASE_RUNNING;

	time_text(started, s->started_us);
	buf_addf(b, "%s{\"name\":\"%s\",\"state\":{", i ? "," : "", c->name);
	if (s->phase == PHASE_PENDING) {
		buf_adds(b, "\"waiting\":{\"reason\":");
		buf_add_json(b, s->container_reason, strlen(s->container_reason));
		buf_adds(b, "}");
	} else if (running)
		buf_addf(b, "\"running\":{\"startedAt\":\"%s\"}", started);
	else
		buf_addf(b,
			 "\"terminated\":{\"exitCode\":%d,\"reason\":\"%s\",\"startedAt\":\"%s\","
			 "\"finishedAt\":\"%s\",\"containerID\":\"containerd://%.8s%zu\"}",
			 s->exit_code, s->container_reason, started, time_text(ended, s->ended_us),
			 f->uid, i);
	buf_addf(b,
		 "},\"lastState\":{},\"ready\":%s,\"restartCount\":0,\"image\":%s,\"imageID\":\"\","
		 "\"containerID\":\"containerd://%.8s%zu\",\"started\":%s}",
		 running ? "true" : "false", c->image_json, f->uid, i, running ? "true" : "false");
}

void kubelet_status_text(struct buf *b, const struct facts *f, const struct pod_status *s)
{
	char since[TIME_TEXT_SIZE];

	time_text(since, s->ended_us ? s->ended_us : s->started_us ? s->started_us : now_us());
	buf_addf(b, "{\"phase\":\"%s\"", phase_text(s->phase));
	if (s->reason || s->message) {
		buf_adds(b, ",\"message\":");
		buf_add_json(b, s->message ? s->message : "", strlen(s->message ? s->message : ""));
		buf_addf(b, ",\"reason\":\"%s\"", s->reason ? s->reason : "");
	}
	/* A pod that was refused at the door has a phase and a reason, no more. */
	if (s->started_us || s->phase == PHASE_PENDING)
		add_conditions(b, f, s, since);
	if (s->host_ip && *s->host_ip)
		buf_addf(b, ",\"hostIP\":\"%s\"", s->host_ip);
	if (*s->pod_ip)
		buf_addf(b, ",\"podIP\":\"%s\",\"podIPs\":[{\"ip\":\"%s\"}]", s->pod_ip, s->pod_ip);
	buf_addf(b, ",\"startTime\":\"%s\"",
		 time_text(since, s->started_us ? s->started_us : now_us()));
	if (s->started_us || s->phase == PHASE_PENDING) {
		buf_adds(b, ",\"containerStatuses\":[");
		for (size_t i = 0; i < f->pod.n_containers; i++)
			add_container(b, f, i, s);
		buf_adds(b, "]");
	}
	buf_addf(b, ",\"qosClass\":\"%s\"}", f->pod.qos);
}
