# fake.sh - what the whole-system tests on the fake apiserver share; sourced after lib.sh
#
# tests/fakekube/README says what it can do wrong. Its processes end with the test, as all do.

fakekube=$test_build/tests/fakekube/fakekube
if ! [ -x "$fakekube" ]; then
	echo "$fakekube: not there; run make check-build first" >&2
	exit 99
fi

# start_fake [option...]: an apiserver with 2 nodes of 4 GPUs unless the options say otherwise
start_fake() {
	rm -f fake.port
	"$fakekube" --nodes 2 --gpus 4 --podgc-delay 1s --port-file "$PWD/fake.port" --kubeconfig "$PWD/kubeconfig" \
		--audit "$PWD/audit" "$@" </dev/null >>fakekube.log 2>&1 3>&- 4>&- 5>&- &
	fake_pid=$!
	wait_for 60 test -s fake.port && fake_port=$(cat fake.port)
}

stop_fake() {
	kill "$fake_pid" && wait_for 60 eval "! kill -0 $fake_pid"
}

# start_fake_gpuqd [option...]
start_fake_gpuqd() {
	start_gpuqd --kubeconfig "$PWD/kubeconfig" "$@" && wait_for 60 is_fresh
}

is_fresh() {
	[ "$(gpuq status --json | json cluster.stale_since)" = null ]
}

is_stale() {
	! is_fresh
}

# fault LINE...: does the lines of a script
fault() {
	for fault_line; do echo "$fault_line"; done >fault.lines
	/usr/bin/curl -sSf --data-binary @fault.lines "http://127.0.0.1:$fake_port/fake/fault" >/dev/null
}

# fake PAGE JSONPATH: a value of what it answers
fake() {
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port$1" | json "$2"
}

# fake_job 'ANNOTATION ...' [option...]: submits a job whose pods behave like that; prints its id
fake_job() {
	fake_notes=
	for fake_note in $1; do fake_notes="$fake_notes --annotation=gpuq.test/$fake_note"; done
	shift
	echo '{command: [a], image: test}' >fake_job.yaml
	# shellcheck disable=SC2086
	submit $fake_notes "$@" fake_job.yaml
}

# n_pods ID: how many pods were ever created for a job
n_pods() {
	grep '"verb":"create","resource":"pods"' audit | grep -c "\"gpuq.io/job\":\"$1\""
}

# no_harm_was_done [NUMBER]: the last test of each file; so many duplicates the test made itself
no_harm_was_done() {
	own_duplicates=${1:-0}
	test_expect_success 'no device was given twice, nothing ran twice' '
		fault clear && for count in overcommits=0 duplicates="$own_duplicates" attempt_overlaps=0 double_successes=0; do
			test "$(fake /fake/audit "${count%=*}")" = "${count#*=}" || { fake "/fake/audit?jobs=1" ""; return 1; }
		done && stop_gpuqd
	'
}
