/* pod_session.c - exec, attach and portforward of a pod, over a WebSocket
 *
 * Programs are make-believe: `cat` gives its input back, `exit N` ends with N, `kill -N 1` (also
 * as sh -c "kill -N 1") goes to the audit as signal-N, `ping` ends when the client has answered
 * a ping of ours, and others are not found. An attached program greets and echoes its input;
 * so does every port, without a greeting.
 */
#include "audit.h"
#include "pods.h"
#include "websocket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum channel { IN = 0, OUT = 1, STATUS = 3, CLOSE = 255 };

struct session {
	struct ws *ws;
	struct fault fault;
	uint64_t n; /* messages that went */
	bool port, reads, spoilt;
};

static const char *const subs[] = { "exec", "attach", "portforward" };

bool pods_session_kind(const char *sub)
{
	for (size_t i = 0; i < ARRAY_LEN(subs); i++)
		if (strcmp(subs[i], sub) == 0)
			return true;
	return false;
}

/* Returns false when that was the end of it. */
static bool spoil(struct session *s)
{
	if (s->spoilt || s->fault.act == FAULT_NONE || s->n < s->fault.after_events)
		return true;
	s->spoilt = true;
	if (s->fault.act == FAULT_HALF_OPEN)
		ws_freeze(s->ws);
	if (s->fault.act != FAULT_CLOSE)
		return true;
	ws_kill(s->ws, s->fault.reset);
	free(s);
	return false;
}

static bool say(struct session *s, enum channel channel, const char *p, size_t n)
{
	struct buf b = BUF_INIT;
	const char head = (char)channel;

	buf_add(&b, &head, 1);
	buf_add(&b, p, n);
	ws_send(s->ws, WS_BINARY, b.s, b.len);
	buf_done(&b);
	s->n++;
	return spoil(s);
}

static void end(struct session *s, int exit_code, const char *message)
{
	struct buf b = BUF_INIT;

	if (exit_code == 0)
		buf_adds(&b, "{\"metadata\":{},\"status\":\"Success\"}");
	else if (message)
		buf_addf(&b,
			 "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"%s\","
			 "\"reason\":\"InternalError\",\"code\":500}",
			 message);
	else
		buf_addf(&b,
			 "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"command terminated "
			 "with non-zero exit code\",\"reason\":\"NonZeroExitCode\",\"details\":"
			 "{\"causes\":[{\"reason\":\"ExitCode\",\"message\":\"%d\"}]}}",
			 exit_code);
	if (say(s, STATUS, b.s, b.len)) {
		ws_end(s->ws);
		free(s);
	}
	buf_done(&b);
}

static void on_message(void *arg, enum ws_op op, const char *p, size_t n)
{
	struct session *s = arg;

	if (op == WS_PING) {
		ws_send(s->ws, WS_PONG, p, n);
	} else if (op == WS_PONG && !s->reads) {
		end(s, n == 5 && memcmp(p, "there", 5) == 0 ? 0 : 1, NULL);
	} else if (op == WS_CLOSE) {
		ws_end(s->ws);
		free(s);
	} else if (op == WS_BINARY && n > 1 && (unsigned char)p[0] == CLOSE) {
		if (s->reads)
			end(s, 0, NULL);
	} else if (op == WS_BINARY && n > 1 && p[0] == IN && s->reads) {
		say(s, s->port ? IN : OUT, p + 1, n - 1);
	}
}

static void on_gone(void *arg)
{
	free(arg);
}

/* The command of an exec, its words put together with blanks. */
static void command(const struct http_req *req, struct buf *out)
{
	for (size_t i = 0; i < req->n_params; i++)
		if (strcmp(req->params[i].key, "command") == 0)
			buf_addf(out, "%s%s", out->len ? " " : "", req->params[i].value);
}

static void run(struct session *s, const char *line, const char *pod)
{
	char note[32];
	int n;

	if (strncmp(line, "sh -c ", 6) == 0)
		line += 6;
	if (sscanf(line, "kill -%d 1", &n) == 1) {
		snprintf(note, sizeof(note), "signal-%d", n);
		audit_note(note, pod);
		end(s, 0, NULL);
	} else if (sscanf(line, "exit %d", &n) == 1) {
		end(s, n, NULL);
	} else if (strcmp(line, "ping") == 0) {
		ws_send(s->ws, WS_PING, "there", 5);
	} else if (strcmp(line, "cat") == 0) {
		s->reads = true;
	} else {
		end(s, 1, "exec failed: executable file not found in $PATH");
	}
}

static void greet_port(struct session *s, const char *port)
{
	const unsigned n = (unsigned)strtoul(port, NULL, 10);
	const char text[2] = { (char)(n & 255), (char)(n >> 8 & 255) };

	s->port = s->reads = true;
	if (say(s, IN, text, 2))
		say(s, 1, text, 2);
}

void pods_session(const struct call *call, const struct fault *fault, struct reply *r)
{
	const struct obj *o = store_find(call->kind, call->ns, call->name);
	const char *sub = call->sub, *port = http_param(call->req, "ports");
	const bool v5 = strncmp(call->req->ws_protocol, "v5.", 3) == 0;
	struct buf line = BUF_INIT, target = BUF_INIT;
	struct session *s;

	if (!o) {
		reply_not_found(r, call->kind, call->name);
		return;
	}
	if (strcmp(call->req->upgrade, "websocket") != 0 || !*call->req->ws_key) {
		reply_error(r, 400, "BadRequest", NULL, NULL, "Upgrade request required");
		return;
	}
	if (o->v->phase != PHASE_RUNNING) {
		reply_error(r, 500, "InternalError", NULL, NULL,
			    "cannot exec into a container in a completed pod");
		return;
	}
	s = xcalloc(1, sizeof(*s));
	s->fault = *fault;
	buf_adds(&target, port ? port : "");
	command(call->req, &line);
	buf_adds(&line, "");
	s->ws = ws_upgrade(call->req, v5 ? "v5.channel.k8s.io" : "v4.channel.k8s.io", on_message,
			   on_gone, s);
	if (!s->ws) {
		free(s);
	} else if (spoil(s)) {
		if (strcmp(sub, "exec") == 0)
			run(s, line.s, call->name);
		else if (port)
			greet_port(s, target.s);
		else {
			s->reads = true;
			say(s, OUT, "here\n", 5);
		}
	}
	buf_done(&line);
	buf_done(&target);
}
