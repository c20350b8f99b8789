#!/bin/sh
test_description='more connections than a user may have: short calls and operators have a reserve, waits wait'
. "$(dirname "$0")/lib.sh"

# hold FILE COMMAND [argument...]: connections that stay until let_go; FILE has how many were taken
hold() {
	hold_out=$1
	shift
	rm -f go && mkfifo go
	"$@" <go >"$hold_out" 2>hold.err 8>&- 9>&- &
	hold_pid=$!
	exec 9>go
	wait_for 60 test -s "$hold_out" || { cat hold.err; return 1; }
}
let_go() {
	exec 9>&-
	wait "$hold_pid"
}
# other command...: as another user, where that can be
other() {
	if [ "$(id -u)" = 0 ]; then
		as nobody "$@"
	else
		"$@"
	fi
}
hostile() {
	/usr/bin/python3 "$TMPDIR/hostile.py" "$gpuqd_socket" "$@"
}
other_hostile() {
	other /usr/bin/python3 "$TMPDIR/hostile.py" "$gpuqd_socket" "$@"
}
# In the background: the connections that are held end with descriptor 9.
waits() {
	exec 9>&-
	other gpuq wait "$as_done" >wait.out 2>wait.err
	echo $? >wait.code
}
runs() {
	exec 9>&-
	other gpuq run --chdir / -- true >run.out 2>run.err
	echo $? >run.code
}
[ "$(id -u)" = 0 ] && reserve=8 || reserve=32

test_expect_success 'start' '
	echo "log_level: info" >gpuqd.yaml && start_gpuqd --config "$PWD/gpuqd.yaml" && cp "$test_source/tests/sharness/hostile.py" "$TMPDIR" &&
	chmod a+r "$TMPDIR/hostile.py" && { test "$(id -u)" != 0 || open_to_all; } && own=$(sh_job "exit 0" --hold) &&
	as_job=$(printf "#!/bin/sh\nexit 0\n" | other gpuq submit --parsable --hold --chdir / -)
'

test_expect_success 'with 256 waits status and cancel go on, and an operator has its own' '
	hold taken other_hostile waiters 256 "$as_job" && test "$(cat taken)" = 256 &&
	exits 0 other gpuq status "$as_job" && exits 0 other gpuq queue && mine=$(printf "#!/bin/sh\nexit 0\n" | other gpuq submit --parsable --hold --chdir / -) &&
	exits 0 other gpuq cancel "$mine" && exits 0 gpuq queue && exits 0 gpuq status "$as_job"
'

test_expect_success 'gpuq wait and run wait for a place, and go on' '
	as_done=$(sh_job "exit 0") && job_becomes "$as_done" COMPLETED && { waits & } && wait_pid=$! && { runs & } && run_pid=$! &&
	sleep 13 && test ! -e wait.code && test ! -e run.code && let_go && wait $wait_pid && wait $run_pid && cat wait.err run.err &&
	test "$(cat wait.code)" = 0 && test "$(cat run.code)" = 0
'

test_expect_success 'the reserve is of a few, and no place to stay' '
	hold taken other_hostile waiters 256 "$as_job" && eval "exec 8>&9 9>&-" && first=$hold_pid &&
	hold idle other_hostile idle $reserve && other_hostile waiters 1 "$as_job" </dev/null >late && test "$(cat late)" = 0 &&
	exits 0 other gpuq status "$as_job" && let_go && exec 8>&- && wait "$first"
'

test_expect_success 'an operator with 256 waits still sees and ends jobs' '
	hold taken hostile waiters 256 "$own" && test "$(cat taken)" = 256 && exits 0 gpuq queue && exits 0 gpuq diag && exits 0 gpuq status "$own" &&
	exits 0 gpuq hold "$own" && eval "exec 8>&9 9>&-" && first=$hold_pid && hold idle hostile idle 31 && test "$(cat idle)" = 31 &&
	exits 0 gpuq queue && let_go && exec 8>&- && wait "$first"
'

test_expect_success 'the bound is a key that is read again; none is refused' '
	echo "connections_per_user: 0" >bad.yaml && exits 78 gpuqd --config bad.yaml --check && says err "bad.yaml:1:[0-9]+:.*connections_per_user" &&
	echo "connections_per_user: 3" >gpuqd.yaml && kill -HUP "$gpuqd_pid" && wait_for 60 says gpuqd.log "config.reload" &&
	hold taken other_hostile waiters 3 "$as_job" && exits 0 other gpuq status "$as_job" &&
	{ other timeout 3 gpuq wait "$as_job" >out 2>err; test $? = 124; } && let_go && exits 0 gpuq cancel "$own" "$as_job" && stop_gpuqd
'

test_done
