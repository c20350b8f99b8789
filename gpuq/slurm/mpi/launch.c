#include "config.h"

#include "gpuq/slurm/mpi/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utlist.h>

#include "gpuq/cli.h"
#include "gpuq/file.h"

#define ASKERS_MAX (LAUNCH_FDS - 1)
#define COMMAND_BYTES_MAX (1u << 20)
#define FAILED 255 /* as ssh says that it could not */

/* A srun of the script: it sends HOST NUL COMMAND and shuts down its side; its reply is an int. */
struct asker {
	int fd; /* -1 = none */
	struct gpuq_buf in;
	uint32_t id; /* 0 = has not asked yet */
	long part;
};

/* A command that runs here. */
struct child {
	struct child *next;
	pid_t pid;
	uint32_t id;
};

struct launch {
	const struct mpi_step *step;
	struct exchange *exchange; /* NULL = one part */
	int out, listener;
	uint32_t last_id;
	struct asker askers[ASKERS_MAX];
	struct child *children;
};

struct launch *launch_new(const struct mpi_step *s, struct exchange *x, int out)
{
	struct launch *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct launch){ .step = s, .exchange = x, .out = out, .listener = -1 };
	for (int i = 0; i < ASKERS_MAX; i++)
		l->askers[i] =
			(struct asker){ .fd = -1, .in = GPUQ_BUF_INIT_MAX(COMMAND_BYTES_MAX) };
	return l;
}

/* ---- what the command finds ---- */

static long parts_of(const struct launch *l)
{
	return l->exchange ? exchange_n_parts(l->exchange) : 1;
}

static const char *host_of(const struct launch *l, long part)
{
	return l->exchange ? exchange_host_of(l->exchange, part) : "localhost";
}

/* Write "HOST slots=4" or "HOST:4" for each part. */
static int write_hosts(const struct launch *l, const char *path, const char *between)
{
	FILE *f = fopen(path, "w");

	for (long i = 0; f && i < parts_of(l); i++) {
		const long left = l->step->n - i * l->step->per_node;

		fprintf(f, "%s%s%ld\n", host_of(l, i), between,
			l->exchange && left > l->step->per_node ? l->step->per_node : left);
	}
	return f && fclose(f) == 0 ? 0 : -1;
}

int launch_self(struct gpuq_buf *out)
{
	static const char name[] = "/srun";
	const size_t tail = sizeof(name) - 1;
	char self[FILE_PATH_BYTES];
	const ssize_t n = file_self(self, sizeof(self));

	if (n <= 0)
		return -1;
	gpuq_buf_quote(out, self);
	if ((size_t)n < tail || strcmp(self + n - tail, name) != 0)
		gpuq_buf_adds(out, " slurm srun");
	return out->failed ? -1 : 0;
}

static int write_script(const char *path)
{
	struct gpuq_buf self = GPUQ_BUF_INIT;
	FILE *f = launch_self(&self) == 0 ? fopen(path, "w") : NULL;

	if (f)
		fprintf(f, "#!/bin/sh\nhost=$1\nshift\nexec %s --nodelist=\"$host\" -- \"$@\"\n",
			gpuq_buf_str(&self));
	gpuq_buf_done(&self);
	return f && fclose(f) == 0 && chmod(path, 0700) == 0 ? 0 : -1;
}

/* The name of an interface by which other pods reach us: Hydra would give them our host name, which they may not
 * know. */
static bool find_interface(char out[IF_NAMESIZE])
{
	struct ifaddrs *list;
	bool found = false;

	if (getifaddrs(&list) < 0)
		return false;
	for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_flags & IFF_LOOPBACK || !(i->ifa_flags & IFF_UP) ||
		    i->ifa_addr->sa_family != AF_INET)
			continue;
		snprintf(out, IF_NAMESIZE, "%s", i->ifa_name);
		found = true;
	}
	freeifaddrs(list);
	return found;
}

static int listen_at(struct launch *l, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(a.sun_path))
		return -1;
	memcpy(a.sun_path, path, strlen(path));
	l->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return l->listener >= 0 && bind(l->listener, (struct sockaddr *)&a, sizeof(a)) == 0 &&
			       listen(l->listener, ASKERS_MAX) == 0
		       ? 0
		       : -1;
}

int launch_open(struct launch *l, const char *folder, struct gpuq_buf *env)
{
	/* OpenMPI starts its daemons by the agent: all at once, attached to it; its knowledge of Slurm would look for
	 * nodes. They look for the agent as well, in pods that have no file of ours. */
	static const struct {
		const char *text, *file;
	} variables[] = {
		{ LAUNCH_VARIABLE "=", "/socket" },
		{ "OMPI_MCA_plm=rsh", "" },
		{ "OMPI_MCA_ras=^slurm", "" },
		{ "OMPI_MCA_plm_rsh_no_tree_spawn=1", "" },
		{ "OMPI_MCA_orte_leave_session_attached=1", "" },
		{ "OMPI_MCA_plm_rsh_agent=srun --nodelist", "" },
		{ "OMPI_MCA_orte_default_hostfile=", "/hosts" },
		/* The same of OpenMPI 5. */
		{ "PRTE_MCA_plm=ssh", "" },
		{ "PRTE_MCA_ras=^slurm", "" },
		{ "PRTE_MCA_plm_ssh_no_tree_spawn=1", "" },
		{ "PRTE_MCA_prte_leave_session_attached=1", "" },
		{ "PRTE_MCA_plm_ssh_agent=srun --nodelist", "" },
		{ "PRTE_MCA_prte_default_hostfile=", "/hosts" },
		{ "HYDRA_LAUNCHER=rsh", "" },
		{ "HYDRA_LAUNCHER_EXEC=", "/rsh" },
		{ "HYDRA_HOST_FILE=", "/hosts.hydra" },
	};
	char socket[512], script[512], hosts[512], hydra[512], interface[IF_NAMESIZE];

	snprintf(socket, sizeof(socket), "%s/socket", folder);
	snprintf(script, sizeof(script), "%s/rsh", folder);
	snprintf(hosts, sizeof(hosts), "%s/hosts", folder);
	snprintf(hydra, sizeof(hydra), "%s/hosts.hydra", folder);
	if (write_hosts(l, hosts, " slots=") < 0 || write_hosts(l, hydra, ":") < 0 ||
	    write_script(script) < 0 || listen_at(l, socket) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		gpuq_buf_adds(env, variables[i].text);
		if (*variables[i].file)
			gpuq_buf_printf(env, "%s%s", folder, variables[i].file);
		gpuq_buf_addc(env, '\0');
	}
	if (l->exchange && find_interface(interface)) {
		gpuq_buf_printf(env, "HYDRA_IFACE=%s", interface);
		gpuq_buf_addc(env, '\0');
	}
	return 0;
}

/* ---- commands that run here ---- */

static void __attribute__((noreturn)) become(const struct launch *l, char *command)
{
	static const int deaf[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
				    SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE };

	for (size_t i = 0; i < sizeof(deaf) / sizeof(deaf[0]); i++)
		signal(deaf[i], SIG_DFL);
	setpgid(0, 0);
	dup2(l->out, 1);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static void report(struct launch *l, uint32_t id, int code)
{
	if (l->step->part == 0)
		launch_ran(l, id, code);
	else
		exchange_ran(l->exchange, id, code);
}

void launch_run(struct launch *l, uint32_t id, const char *command, size_t n)
{
	struct child *c = malloc(sizeof(*c));
	char *text = strndup(command, n);
	const pid_t pid = c && text ? fork() : -1;

	if (pid == 0)
		become(l, text);
	free(text);
	if (pid < 0) {
		free(c);
		report(l, id, FAILED);
		return;
	}
	setpgid(pid, pid);
	*c = (struct child){ .pid = pid, .id = id };
	LL_PREPEND(l->children, c);
}

void launch_halt(struct launch *l, uint32_t id)
{
	struct child *c;

	LL_SEARCH_SCALAR(l->children, c, id, id);
	if (c)
		kill(-c->pid, SIGTERM);
}

static void reap(struct launch *l)
{
	struct child *c, *next;
	int status;

	LL_FOREACH_SAFE(l->children, c, next)
	{
		if (waitpid(c->pid, &status, WNOHANG) != c->pid)
			continue;
		LL_DELETE(l->children, c);
		report(l, c->id,
		       WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
		free(c);
	}
}

bool launch_is_busy(const struct launch *l)
{
	return l->children != NULL;
}

void launch_end(struct launch *l)
{
	struct child *c;

	LL_FOREACH(l->children, c)
	kill(-c->pid, SIGKILL);
}

/* ---- those that ask ---- */

static void dismiss(struct asker *a)
{
	close(a->fd);
	a->fd = -1;
	a->id = 0;
	gpuq_buf_clear(&a->in);
}

void launch_ran(struct launch *l, uint32_t id, int code)
{
	for (int i = 0; i < ASKERS_MAX; i++)
		if (l->askers[i].fd >= 0 && l->askers[i].id == id) {
			send(l->askers[i].fd, &code, sizeof(code), MSG_DONTWAIT | MSG_NOSIGNAL);
			dismiss(&l->askers[i]);
			return;
		}
}

void launch_gone(struct launch *l, long part)
{
	for (int i = 0; i < ASKERS_MAX; i++)
		if (l->askers[i].id && l->askers[i].part == part)
			launch_ran(l, l->askers[i].id, FAILED);
}

/* All of it has come: HOST NUL COMMAND. */
static void begin(struct launch *l, struct asker *a)
{
	const char *end = a->in.len ? memchr(a->in.data, '\0', a->in.len) : NULL;
	long part = end ? parts_of(l) - 1 : -1;

	if (end && strncmp(a->in.data, LAUNCH_PART, strlen(LAUNCH_PART)) == 0) {
		const long n = strtol(a->in.data + strlen(LAUNCH_PART), NULL, 10);

		part = n >= 0 && n <= part ? n : -1;
	} else {
		while (part >= 0 && strcmp(host_of(l, part), a->in.data) != 0)
			part--;
	}
	a->id = ++l->last_id;
	a->part = part;
	if (part < 0)
		launch_ran(l, a->id, FAILED);
	else if (part == 0)
		launch_run(l, a->id, end + 1, a->in.len - (size_t)(end + 1 - a->in.data));
	else
		exchange_run(l->exchange, part, a->id, end + 1,
			     a->in.len - (size_t)(end + 1 - a->in.data));
}

static void read_some(struct launch *l, struct asker *a)
{
	char bytes[4096];
	const ssize_t n = recv(a->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && !a->id && gpuq_buf_add(&a->in, bytes, (size_t)n) == 0)
		return;
	if (n == 0 && !a->id) {
		begin(l, a);
		return;
	}
	dismiss(a);
}

/* One that has asked has shut down its side: that it has gone is seen by an error. */
static void on_hangup(struct launch *l, struct asker *a)
{
	if (a->part > 0)
		exchange_halt(l->exchange, a->part, a->id);
	else
		launch_halt(l, a->id);
	dismiss(a);
}

static void accept_one(struct launch *l)
{
	const int fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC);

	for (int i = 0; i < ASKERS_MAX && fd >= 0; i++)
		if (l->askers[i].fd < 0) {
			l->askers[i].fd = fd;
			return;
		}
	if (fd >= 0)
		close(fd);
}

long launch_fill(const struct launch *l, struct pollfd *fds)
{
	long n = 0;

	fds[n++] = (struct pollfd){ l->listener, POLLIN, 0 };
	for (int i = 0; i < ASKERS_MAX; i++)
		fds[n++] = (struct pollfd){ l->askers[i].fd, (short)(l->askers[i].id ? 0 : POLLIN),
					    0 };
	return n;
}

void launch_attend(struct launch *l, const struct pollfd *fds)
{
	for (int i = 0; i < ASKERS_MAX; i++) {
		struct asker *a = &l->askers[i];

		if (!fds[i + 1].revents || a->fd != fds[i + 1].fd)
			continue;
		if (a->id)
			on_hangup(l, a);
		else
			read_some(l, a);
	}
	if (fds[0].revents)
		accept_one(l);
	reap(l);
}

int launch_ask(const char *path, const char *host, char **words)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct gpuq_buf ask = GPUQ_BUF_INIT;
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int code = FAILED;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	gpuq_buf_add(&ask, host, strlen(host) + 1);
	for (char **w = words; *w; w++)
		gpuq_buf_printf(&ask, "%s%s", w == words ? "" : " ", *w);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    send(fd, ask.data, ask.len, MSG_NOSIGNAL) != (ssize_t)ask.len ||
	    shutdown(fd, SHUT_WR) < 0)
		cli_say("error: %s: the srun that serves it does not reply", host);
	/* When the launcher has ended all end, and nothing is said. */
	else if (recv(fd, &code, sizeof(code), MSG_WAITALL) == sizeof(code) && code == FAILED)
		cli_say("error: %s: the command could not be run", host);
	gpuq_buf_done(&ask);
	if (fd >= 0)
		close(fd);
	return code;
}
