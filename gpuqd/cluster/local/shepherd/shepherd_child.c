#include "config.h"

#include "gpuqd/cluster/local/shepherd/shepherd_child.h"
#include "gpuqd/cluster/local/shepherd/last_words.h"
#include "gpuqd/cluster/local/shepherd/unpack.h"
#include "libgpuq/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXIT_FILES 1 /* as sbatch: a job whose directory or files are missing fails with 1 */
#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND 127

static void tell(const struct shepherd_child *c, const struct tell *t)
{
	const size_t n = offsetof(struct tell, text) + strlen(t->text) + 1;

	if (c->tell_fd >= 0)
		send(c->tell_fd, t, n, MSG_NOSIGNAL);
}

/* One sentence to the output, where its owner looks, and to the shepherd. */
static void __attribute__((noreturn, format(printf, 3, 4)))
give_up(const struct shepherd_child *c, int code, const char *fmt, ...)
{
	struct tell t = { .type = TELL_WHY };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t.text, 400, fmt, ap);
	va_end(ap);
	dprintf(STDERR_FILENO, "gpuq: %s\n", t.text);
	tell(c, &t);
	_exit(code);
}

/* Should the shepherd be killed, so are we. The kernel forgets this wish when the
 * identity changes, so it is said again after that. */
static void die_with(pid_t shepherd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != shepherd)
		_exit(EXIT_CANNOT_RUN);
}

static void plain_signals(void)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		sigaction(s, &sa, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void plain_limits(void)
{
	struct rlimit core;
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";

	if (getrlimit(RLIMIT_CORE, &core) == 0) {
		core.rlim_cur = 0; /* the hard limit stays: a job may request cores itself */
		setrlimit(RLIMIT_CORE, &core);
	}
	/* A daemon is often protected from the OOM killer; its jobs must not be. */
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && text[0] == '-')
		dprintf(fd, "0\n");
	if (fd >= 0)
		close(fd);
}

/* Capabilities that a program may inherit outlive a change of the user. */
static void drop_inheritable(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &head, caps) != 0)
		return;
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		caps[i].inheritable = 0;
	syscall(SYS_capset, &head, caps);
}

bool shepherd_child_become(uid_t uid, gid_t gid)
{
	const struct passwd *pw = getpwuid(uid);

	if (geteuid() != 0)
		return uid == geteuid();
	drop_inheritable();
	if ((pw ? initgroups(pw->pw_name, gid) : setgroups(1, &gid)) != 0 ||
	    setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
		return false;
	/* The keys of the daemon's session keyring can be used by every process that is in it. A
	 * kernel without keyrings refuses. */
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	return true;
}

static void become(const struct shepherd_child *c)
{
	const unsigned uid = (unsigned)c->order->job_uid;

	if (shepherd_child_become(uid, (gid_t)c->order->job_gid))
		return;
	if (geteuid() != 0)
		give_up(c, EXIT_CANNOT_RUN, "cannot become user %u: gpuqd is not root", uid);
	give_up(c, EXIT_CANNOT_RUN, "cannot become user %u: %s", uid, strerror(errno));
}

/* Open one of the job's own files, as the job's user, relative to its directory. */
static int open_file(const struct shepherd_child *c, const char *path, int flags, const char *what)
{
	int fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0666);

	if (fd < 0 && errno == EACCES && (flags & O_ACCMODE) == O_RDWR)
		fd = open(path, (flags & ~O_ACCMODE) | O_WRONLY | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0)
		give_up(c, EXIT_FILES, "cannot open the %s file '%s': %s", what, path,
			strerror(errno));
	return fd;
}

/* Report the output file to the shepherd, but only one that is open for reading as well: a user
 * who may not read a file shall not read it through `gpuq logs`. */
static void tell_target(const struct shepherd_child *c, int fd, const char *cwd, const char *path)
{
	struct tell t = { .type = TELL_TARGET };
	struct stat st;
	int n;

	if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR || fstat(fd, &st) != 0 ||
	    !S_ISREG(st.st_mode))
		return;
	t.dev = st.st_dev;
	t.ino = st.st_ino;
	t.size = st.st_size;
	n = *path == '/' ? snprintf(t.text, sizeof(t.text), "%s", path)
			 : snprintf(t.text, sizeof(t.text), "%s/%s", cwd, path);
	if (n > 0 && (size_t)n < sizeof(t.text))
		tell(c, &t);
}

/* Opened for reading too, so that programs may look at /dev/stdout as at a file. */
static void open_files(const struct shepherd_child *c, const char *cwd)
{
	const struct order *o = c->order;
	const int flags = O_RDWR | O_APPEND | O_CREAT | (o->append ? 0 : O_TRUNC);
	const bool both = o->error[0] && strcmp(o->error, o->output) == 0;
	int in = -1, out = -1, error = -1;

	if (o->input[0])
		in = open_file(c, o->input, O_RDONLY, "input");
	if (o->output[0])
		out = open_file(c, o->output, flags, "output");
	if (o->error[0] && !both)
		error = open_file(c, o->error, flags, "error");
	if (out >= 0)
		tell_target(c, out, cwd, o->output);
	if (in >= 0)
		dup2(in, STDIN_FILENO);
	if (out >= 0) {
		dup2(out, STDOUT_FILENO);
		dup2(out, STDERR_FILENO);
	}
	if (error >= 0)
		dup2(error, STDERR_FILENO);
	if (o->script && c->tell_fd >= 0) {
		const struct tell t = { .type = TELL_STDERR };

		last_words_send(c->tell_fd, &t, offsetof(struct tell, text) + 1, STDERR_FILENO);
	}
}

static bool has_variable(const struct gpuq_strlist *env, const char *name)
{
	const size_t n = strlen(name);

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->items[i], name, n) == 0 && env->items[i][n] == '=')
			return true;
	return false;
}

/* The order's variables, and what a login would have set where they say nothing. */
static char **environment(const struct shepherd_child *c, const struct passwd *pw, const char *cwd)
{
	const struct gpuq_strlist *env = &c->order->env;
	const struct {
		const char *name, *value;
	} defaults[] = {
		{ "PATH", "/usr/local/bin:/usr/bin:/bin" },
		{ "HOME", pw ? pw->pw_dir : "/" },
		{ "USER", pw ? pw->pw_name : c->order->user },
		{ "LOGNAME", pw ? pw->pw_name : c->order->user },
		{ "SHELL", pw && pw->pw_shell[0] ? pw->pw_shell : "/bin/sh" },
	};
	const size_t n_defaults = sizeof(defaults) / sizeof(defaults[0]);
	char **out = calloc(env->n + n_defaults + 2, sizeof(*out));
	size_t n = 0;

	if (!out)
		give_up(c, EXIT_CANNOT_RUN, "no memory for the environment");
	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->items[i], "PWD=", 4) != 0)
			out[n++] = (char *)env->items[i];
	for (size_t i = 0; i < n_defaults; i++)
		if (!has_variable(env, defaults[i].name) &&
		    asprintf(&out[n], "%s=%s", defaults[i].name, defaults[i].value) > 0)
			n++;
	if (asprintf(&out[n], "PWD=%s", cwd) > 0)
		n++;
	out[n] = NULL;
	return out;
}

/* "#!/usr/bin/env -S python3 -u" -> interpreter and its one argument, as the kernel
 * splits them; without such a line it is /bin/sh's. Done here and not by exec, so that
 * a script also runs from a filesystem that is mounted noexec. */
static void interpreter(const struct shepherd_child *c, int fd, char *line, size_t room,
			const char **program, const char **argument)
{
	ssize_t n = pread(fd, line, room - 1, 0);
	char *p, *end;

	*program = "/bin/sh";
	*argument = NULL;
	if (n < 0)
		give_up(c, EXIT_CANNOT_RUN, "cannot read the script: %s", strerror(errno));
	line[n] = '\0';
	if (strncmp(line, "#!", 2) != 0)
		return;
	end = line + strcspn(line, "\n");
	while (end > line && strchr(" \t\r", end[-1]))
		end--;
	*end = '\0';
	p = line + 2 + strspn(line + 2, " \t");
	if (!*p)
		return;
	*program = p;
	p += strcspn(p, " \t");
	if (!*p)
		return;
	*p++ = '\0';
	*argument = p + strspn(p, " \t");
}

static int exit_code_of(int why)
{
	return why == ENOENT || why == ENOTDIR ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

#define LAUNCH_WORDS 5

static size_t put_launch(const char **argv)
{
	static const char *const words[LAUNCH_WORDS] = { GPUQ_LAUNCH_COMMAND };

	/* The script of each pod has a path of its own, by which sruns would not know their step. */
	setenv("GPUQ_STEP_NAME", "launch", 1);
	memcpy(argv, words, sizeof(words));
	return LAUNCH_WORDS;
}

/* Become the command, behind srun where that launches it. */
static void run_command(const struct shepherd_child *c, const struct gpuq_strlist *command)
{
	const char **argv = calloc(command->n + LAUNCH_WORDS + 1, sizeof(*argv));
	const size_t n = argv && !c->command && c->order->launch ? put_launch(argv) : 0;

	if (!argv)
		return;
	memcpy(argv + n, command->items, command->n * sizeof(*argv));
	execvp(argv[0], (char **)argv);
}

static void __attribute__((noreturn))
run_script(const struct shepherd_child *c, int fd, const struct gpuq_strlist *args)
{
	const char **argv = calloc(args->n + LAUNCH_WORDS + 4, sizeof(*argv));
	const char *program, *argument;
	char line[4096], path[4200];
	size_t n = 0;

	if (!argv)
		give_up(c, EXIT_CANNOT_RUN, "no memory for the arguments");
	interpreter(c, fd, line, sizeof(line), &program, &argument);
	snprintf(path, sizeof(path), "%s/script", c->pod_dir);
	if (access(path, R_OK) != 0) {
		/* The state directory is closed to this user; the open file is not. */
		snprintf(path, sizeof(path), "/dev/fd/%d", fd);
		fcntl(fd, F_SETFD, 0);
	}
	if (c->order->launch)
		n = put_launch(argv);
	argv[n++] = program;
	if (argument)
		argv[n++] = argument;
	argv[n++] = path;
	for (size_t i = 0; i < args->n; i++)
		argv[n++] = args->items[i];
	execvp(argv[0], (char **)argv);
	give_up(c, exit_code_of(errno), "cannot run the script's interpreter '%s': %s", argv[0],
		strerror(errno));
}

/* Prepare the files that the job carries, with the daemon's identity; -1 = it carries none. */
static int prepare_code(const struct shepherd_child *c, int *archive)
{
	int fd;

	if (!c->order->code || c->command)
		return -1;
	fd = unpack_prepare(c->pod_fd, (uid_t)c->order->job_uid, (gid_t)c->order->job_gid, archive);
	if (fd < 0)
		give_up(c, EXIT_CANNOT_RUN, "cannot make the directory for the code of the job: %s",
			strerror(errno));
	return fd;
}

static void unpack(const struct shepherd_child *c, int dir_fd, int archive)
{
	char why[300];

	if (dir_fd < 0)
		return;
	if (unpack_run(dir_fd, archive, why, sizeof(why)) != 0)
		give_up(c, EXIT_CANNOT_RUN, "%s", why);
	close(archive);
	close(dir_fd);
}

static void become_session_leader(const struct shepherd_child *c)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid(); /* its process group and session are the job's */
	if (c->tty_fd >= 0) {
		ioctl(c->tty_fd, TIOCSCTTY, 0);
		for (int fd = 0; fd < 3; fd++)
			dup2(c->tty_fd, fd);
		return;
	}
	if (c->in_fd >= 0)
		dup2(c->in_fd, STDIN_FILENO);
	else if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(c->out_fd, STDOUT_FILENO);
	dup2(c->err_fd >= 0 ? c->err_fd : c->out_fd, STDERR_FILENO);
}

void shepherd_child_run(const struct shepherd_child *c)
{
	const struct order *o = c->order;
	const struct gpuq_strlist *argv = c->command ? c->command : &o->argv;
	const struct passwd *pw;
	const char *cwd = o->cwd;
	int script = -1, archive = -1, code;
	char go;

	if (c->lock_fd >= 0)
		close(c->lock_fd);
	die_with(c->shepherd);
	become_session_leader(c);
	plain_signals();
	if (c->go_fd >= 0 && read(c->go_fd, &go, 1) != 1)
		_exit(EXIT_CANNOT_RUN); /* the shepherd is gone: nothing must start */

	if (o->script && !c->command) {
		script = openat(c->pod_fd, "script", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (script < 0)
			give_up(c, EXIT_CANNOT_RUN, "cannot open the script: %s", strerror(errno));
	}
	code = prepare_code(c, &archive);
	plain_limits();
	pw = getpwuid((uid_t)o->job_uid);
	become(c);
	die_with(c->shepherd);
	if (o->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		give_up(c, EXIT_CANNOT_RUN, "cannot give up new privileges: %s", strerror(errno));
	umask(o->file_mask >= 0 ? (mode_t)(o->file_mask & 0777) : 022);

	unpack(c, code, archive);
	if (!*cwd)
		cwd = pw && pw->pw_dir[0] == '/' ? pw->pw_dir : "/";
	if (chdir(cwd) != 0)
		give_up(c, EXIT_FILES, "cannot change to the directory '%s': %s%s", cwd,
			strerror(errno),
			o->code && errno == EACCES
				? " (gpuqd's state directory needs mode 711 for jobs of "
				  "other users that carry code)"
				: "");
	if (!c->command)
		open_files(c, cwd);
	environ = environment(c, pw, cwd);
	if (script >= 0)
		run_script(c, script, &o->argv);
	run_command(c, argv);
	give_up(c, exit_code_of(errno), "cannot run '%s': %s", argv->items[0], strerror(errno));
}
