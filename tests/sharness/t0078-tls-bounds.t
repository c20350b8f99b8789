#!/bin/sh
test_description='bounds of bytes in flight, of connections and of calls hold for users of tls:// as for those of the socket'
. "$(dirname "$0")/lib.sh"

if ! test_have_prereq ROOT; then
	skip_all='jobs of a remote user take root'
	test_done
fi
if ldd "$test_build/gpuqd/gpuqd" "$test_build/gpuqd/.libs/gpuqd" 2>/dev/null | grep -q asan; then
	echo "no measuring of memory under a sanitizer"
else
	test_set_prereq MEMORY
fi
XDG_CONFIG_HOME=$PWD/config
export XDG_CONFIG_HOME
# away command...: as the remote user daemon
away() {
	env GPUQ_SERVER="$address" GPUQ_TOKEN_FILE="$PWD/token" "$@"
}
# hostile ATTACK [argument...]: over tls://, with the token
hostile() {
	/usr/bin/python3 "$test_source/tests/sharness/hostile.py" "tls:$port:$PWD/token" "$@"
}
rss_kib() {
	sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$gpuqd_pid/status"
}
# hoards: 30 unfinished messages of 4 MiB; meanwhile the same user and others are served
hoards() {
	before=$(rss_kib) most=0 served=0
	hostile hoard 30 3 >hoard 2>&1 &
	hoard_pid=$!
	while kill -0 $hoard_pid 2>/dev/null; do
		timeout 20 gpuq queue >served.out 2>&1 && away timeout 20 gpuq queue >served.out 2>&1 || { cat served.out; return 1; }
		served=$((served + 1))
		now=$(rss_kib)
		[ "$now" -le $most ] || most=$now
		flight=$(gpuq diag --json | json rpc.flight_bytes)
		[ "$flight" -le "$most_flight" ] || most_flight=$flight
	done
	wait $hoard_pid || { cat hoard; return 1; }
	echo "served $served times, grew by $((most - before)) KiB, $most_flight bytes in flight"
	[ $served -ge 3 ]
}

test_expect_success 'a daemon with a port, and a token' '
	port=$(free_port) && address=tls://127.0.0.1:$port && exits 0 gpuqd --state "$PWD/state" --make-cert 127.0.0.1 && pin=$(sed -n "s/^pin //p" out) &&
	start_gpuqd --listen "$address" && gpuq token create --for=daemon >token && exits 0 gpuq login --token-file=token "$address?pin=$pin" &&
	exits 0 away gpuq queue
'

# between LEAST MOST: is the number in ./busy
between() {
	[ "$(cat busy)" -ge "$1" ] && [ "$(cat busy)" -le "$2" ] || { cat busy; return 1; }
}

test_expect_success 'a user makes a burst of calls, then so many a second; gpuq waits, others and operators do not' '
	hostile pace job.submit 600 >busy && between 1 400 && hostile pace prio.weights 6000 >busy && between 1 5600 &&
	exits 0 away gpuq queue && exits 0 gpuq queue && /usr/bin/python3 "$test_source/tests/sharness/hostile.py" "${GPUQ_SERVER#unix:}" pace prio.weights 3000 >busy && between 0 0
'

test_expect_success 'one user: 64 MiB in flight, short calls beside them' '
	most_flight=0 && hoards && test "$most_flight" -ge $((60 << 20)) && test "$most_flight" -le $((65 << 20)) &&
	{ ! test_have_prereq MEMORY || test $((most - before)) -lt $(((64 + 64) * 1024)); } &&
	wait_for 60 eval "test \$(gpuq diag --json | json rpc.flight_bytes) -lt 65536"
'

test_expect_success 'connections_per_user: waits wait, short calls have a reserve' '
	stop_gpuqd && echo "connections_per_user: 3" >gpuqd.yaml && start_gpuqd --config "$PWD/gpuqd.yaml" --listen "$address" &&
	job=$(sh_job true --hold) && rm -f go && mkfifo go && { hostile waiters 3 "$job" <go >taken 2>hold.err 9>&- & } && hold=$! && exec 9>go &&
	wait_for 60 test -s taken && test "$(cat taken)" = 3 && exits 0 away gpuq queue && exits 0 away gpuq status "$job" &&
	{ away timeout 3 gpuq wait "$job" >out 2>err; test $? = 124; } && exec 9>&- && wait $hold && gpuq cancel "$job" && stop_gpuqd
'

test_done
