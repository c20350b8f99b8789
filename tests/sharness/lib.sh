# lib.sh - what the whole-system tests share: a daemon of their own, jobs, waiting
#
# A test begins with
#	test_description='what it shows'
#	. "${srcdir:-$(dirname "$0")/../..}/tests/sharness/lib.sh"
# and then is a sharness test: test_expect_success 'what' 'commands &&...', test_done. It runs in an empty
# folder with a blank in its name, which is its $HOME too. Everything that a test started ends with it,
# on failure too: each process carries $GPUQ_TEST_TAG in its environment, jobs inherit it.
#
# By hand: build/tests$ ../../tests/sharness/t0001-local-submit.t (or with top_builddir=DIR)

test_source=$(cd "$(dirname "$0")/../.." && pwd)
test_build=${top_builddir:-$test_source/build}
sharness=${SHARNESS:-/usr/share/sharness/sharness.sh}
if ! [ -r "$sharness" ]; then
	echo "1..0 # SKIP the Debian package sharness is not installed"
	exit 77
fi
for program in gpuqd/gpuqd gpuq/gpuq; do
	if ! [ -x "$test_build/$program" ]; then
		echo "$test_build/$program: not there; run make first" >&2
		exit 99
	fi
done

: "${TMPDIR:=$(mktemp -d /tmp/gpuq-t.XXXXXX)}"
export TMPDIR
# Over TLS root is no user of the local cluster: the whole test is another one.
if [ "${GPUQ_TEST_TRANSPORT:-unix}" = tls ] && [ "$(id -u)" = 0 ]; then
	if ! setpriv --reuid=daemon --regid=daemon --clear-groups test -x "$test_build/gpuqd/gpuqd" -a -r "$test_source/tests/sharness/lib.sh"; then
		echo "1..0 # SKIP user daemon, who would run this test, has no way to $test_build"
		exit 77
	fi
	chown daemon "$TMPDIR" && chmod a+x "$TMPDIR/.." && cd "$TMPDIR" &&
		exec setpriv --reuid=daemon --regid=daemon --clear-groups env HOME="$TMPDIR" USER=daemon LOGNAME=daemon "$test_source/tests/sharness/$(basename "$0")" "$@"
	exit 99
fi
PATH=$test_build/gpuq:$test_build/gpuqd:$test_source/tests/sharness:$PATH
export PATH
SHARNESS_BUILD_DIRECTORY=$test_build/gpuq
SHARNESS_TEST_DIRECTORY=$TMPDIR
HARNESS_ACTIVE=1
export SHARNESS_BUILD_DIRECTORY SHARNESS_TEST_DIRECTORY HARNESS_ACTIVE
# sharness moves $HOME; what was built once stays where it is.
: "${GPUQ_KUBE_CACHE:=${XDG_CACHE_HOME:-$HOME/.cache}/gpuq-kube}"
export GPUQ_KUBE_CACHE
# What the caller has set must not reach the tests.
unset GPUQ_SERVER GPUQ_FAILPOINT KUBECONFIG KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT \
	CUDA_VISIBLE_DEVICES NO_COLOR NOTIFY_SOCKET JOURNAL_STREAM 2>/dev/null

# $HOME becomes the test's own folder; what was built for all tests stays where it is.
: "${GPUQ_KUBE_CACHE:=${XDG_CACHE_HOME:-${HOME-}/.cache}/gpuq-kube}"
export GPUQ_KUBE_CACHE
set -- --verbose --no-color --root="$TMPDIR" "$@"
. "$sharness"

test_cluster=
# Run the body of a test as sharness does, but stop at a variable that nothing sets: as an empty word
# it makes assertions that cannot fail. A body may return.
test_body() {
	eval </dev/null >&3 2>&4 "$*"
}
test_eval_() {
	set -u
	test_body "$@"
	set -- $?
	set +u
	return "$1"
}

GPUQ_TEST_TAG=$TMPDIR-$$
export GPUQ_TEST_TAG
gpuqd_socket=$TMPDIR/s
GPUQ_SERVER=unix:$gpuqd_socket
export GPUQ_SERVER
gpuqd_pid=
. "$test_source/tests/sharness/transport.sh"
transport_reason=$(transport_lacks)
if [ -n "$transport_reason" ]; then
	skip_all=$transport_reason
	test_done
fi

# Root, who can be other users: as those they come over the socket alone.
[ "$(id -u)" = 0 ] && [ "$GPUQ_TEST_TRANSPORT" = unix ] && test_set_prereq ROOT
# A job that requests two CPUs stays pending where this process may use one.
[ "$(nproc)" -ge 2 ] && test_set_prereq TWO_CPUS
# as USER command...: as another user than ours, who may have no way to our build
as() {
	as_user=$1
	shift
	if ! [ -x "$TMPDIR/bin/gpuq" ]; then
		mkdir -p -m 755 "$TMPDIR/bin" && cp "$test_build/gpuq/gpuq" "$TMPDIR/bin" || return 1
	fi
	PATH=$TMPDIR/bin:$PATH setpriv --reuid="$as_user" --regid="$(id -g "$as_user")" --clear-groups -- "$@"
}

# Let other users come to the socket and to this folder.
open_to_all() {
	chmod a+x "$TMPDIR/.." "$TMPDIR" . && chmod a+rw "$gpuqd_socket"
}

# Every process that we or our jobs started, but this shell.
tagged() {
	for tagged_dir in /proc/[0-9]*; do
		[ "${tagged_dir#/proc/}" != $$ ] || continue
		if tr '\0' '\n' <"$tagged_dir/environ" 2>/dev/null | grep -qxF "GPUQ_TEST_TAG=$GPUQ_TEST_TAG"; then
			echo "${tagged_dir#/proc/}"
		fi
	done 2>/dev/null
}

end_all() {
	end_tries=50
	[ -z "$gpuqd_pid" ] || kill "$gpuqd_pid" 2>/dev/null
	while [ $end_tries -gt 0 ] && [ -n "$gpuqd_pid" ] && kill -0 "$gpuqd_pid" 2>/dev/null; do
		sleep 0.1
		end_tries=$((end_tries - 1))
	done
	[ -z "$test_cluster" ] || "$test_source/tests/kube/cluster" stop "$test_cluster" >/dev/null 2>&1
	# sshd drops the environment that tells whose it is, and may have been started in a subshell.
	if [ -r "$TMPDIR/sshd.pids" ]; then
		while read -r end_pid; do
			kill "$end_pid" 2>/dev/null
		done <"$TMPDIR/sshd.pids"
	fi
	# The subshell of this substitution is gone before kill runs; its number is not ours any more.
	for end_pid in $(tagged); do
		kill -KILL "$end_pid" 2>/dev/null
	done
}
trap 'end_code=$?; end_all; (exit $end_code); die' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# ---- waiting ----

# wait_for SECONDS command...: until it succeeds; says what did not
wait_for() {
	wait_seconds=$1
	shift
	wait_until=$(($(date +%s) + wait_seconds))
	until "$@" >"$TMPDIR/wait.out" 2>&1; do
		if [ "$(date +%s)" -ge $wait_until ]; then
			echo "not after $wait_seconds s: $*"
			cat "$TMPDIR/wait.out"
			return 1
		fi
		sleep 0.05
	done
}

# ---- the daemon ----

# start_gpuqd [option...]: in ./state, on $gpuqd_socket; log in ./gpuqd.log. Local cluster with 4 GPUs
# unless the options name a cluster.
start_gpuqd() {
	case " $* " in
	*" --cluster "* | *" --kubeconfig "*) ;;
	*" --gpus "*) set -- --cluster local "$@" ;;
	*) set -- --cluster local --gpus 4 "$@" ;;
	esac
	transport_open || return 1
	if [ -n "$transport_listen" ]; then
		case " $* " in
		*" --config "*) ;;
		*) set -- --config "$TMPDIR/operators.yaml" "$@" ;;
		esac
		set -- --listen "$transport_listen" "$@"
	fi
	gpuqd --state "$PWD/state" --listen "unix:$gpuqd_socket" "$@" </dev/null >>gpuqd.log 2>&1 3>&- 4>&- 5>&- &
	gpuqd_pid=$!
	wait_gpuqd && transport_ready
}

wait_gpuqd() {
	answer_until=$(($(date +%s) + 60))
	until gpuq version >version.out 2>&1; do
		if ! kill -0 "$gpuqd_pid" 2>/dev/null || [ "$(date +%s)" -ge $answer_until ]; then
			echo "gpuqd does not answer; its log:"
			tail -n 30 gpuqd.log
			cat version.out
			return 1
		fi
		sleep 0.05
	done
}

gpuqd_is_dead() {
	! kill -0 "$gpuqd_pid" 2>/dev/null
}

# stop_gpuqd: asks it to end and passes its exit status on; kill_gpuqd does not ask
stop_gpuqd() {
	kill "$gpuqd_pid" || return 1
	wait_for 60 gpuqd_is_dead || { tail -n 30 gpuqd.log; return 1; }
	wait "$gpuqd_pid"
	stop_status=$?
	gpuqd_pid=
	audit_state && return $stop_status
}

kill_gpuqd() {
	kill -KILL "$gpuqd_pid" || return 1
	wait "$gpuqd_pid" 2>/dev/null
	gpuqd_pid=
	audit_state
}

# However it ended, what it left is whole.
audit_state() {
	[ ! -e "$PWD/state/data.mdb" ] || gpuqd --audit --state "$PWD/state" >audit.out 2>&1 || {
		cat audit.out
		return 1
	}
}

# ---- jobs ----

# json PATH: a value of the JSON object on stdin, `pods.0.node`; of several objects one line each.
# null is printed as the word, containers as JSON.
json() {
	/usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    if not line.strip(): continue
    v = json.loads(line)
    for key in sys.argv[1].split("."):
        if key: v = v[int(key)] if isinstance(v, list) else v[key]
    print(v if isinstance(v, str) else json.dumps(v, sort_keys=True))
' "$1"
}

# job ID PATH: a field of its object
job() {
	gpuq status "$1" --json >"$TMPDIR/job.json" || return 1
	json "$2" <"$TMPDIR/job.json"
}

# job_is ID PATH VALUE
job_is() {
	job_got=$(job "$1" "$2") || return 1
	[ "$job_got" = "$3" ] || { echo "job $1: $2 is $job_got, not $3"; cat "$TMPDIR/job.json"; return 1; }
}

# job_becomes ID STATE: waits for it
job_becomes() {
	wait_for "${3:-60}" job_is "$1" state "$2"
}

# submit ARGUMENT...: prints the id; the file may be -
submit() {
	gpuq submit --parsable "$@"
}

# sh_job COMMANDS [option...]: submits a script of these commands, prints the id. It takes no CPU unless an
# option says so: the machine may have one, and another job of the test hold it.
sh_job() {
	sh_text=$1
	shift
	case " $* " in
	*' -c '* | *' --cpus'*) ;;
	*) set -- --cpus 0 "$@" ;;
	esac
	printf '#!/bin/sh\n%s\n' "$sh_text" | submit "$@" -
}

# exits CODE command...: it ends with this code (stdout and stderr in out and err)
exits() {
	exits_want=$1
	shift
	"$@" >out 2>err
	exits_got=$?
	[ $exits_got = "$exits_want" ] && return 0
	echo "exit status $exits_got, not $exits_want: $*"
	sed 's/^/stdout: /' out
	sed 's/^/stderr: /' err
	return 1
}

# says FILE REGEX: it has a line like that
says() {
	grep -Eq -e "$2" "$1" && return 0
	echo "$1 has no line that matches $2; it has:"
	cat "$1"
	return 1
}

# last_result STATE CODE: what the last line of ./err must say
last_result() {
	tail -n 1 err | grep -q '^gpuq-result: ' || { echo "no gpuq-result at the end of stderr:"; cat err; return 1; }
	tail -n 1 err | sed 's/^gpuq-result: //' >result.json
	[ "$(json state <result.json)" = "$1" ] && [ "$(json exit_code <result.json)" = "$2" ] && return 0
	cat result.json
	return 1
}

# in_queue: how many jobs have not ended
in_queue() {
	gpuq queue -h | grep -c .
}

# free_gpus: over all nodes
free_gpus() {
	gpuq nodes --json | json free_gpus | awk '{ n += $1 } END { print n + 0 }'
}
