#!/bin/sh
test_description='calls that last: events that nobody reads cost nothing, output that is read has a bound of processes'
. "$(dirname "$0")/lib.sh"

# A sanitizer keeps what was freed for a while: its memory says nothing.
if ldd "$test_build/gpuqd/gpuqd" "$test_build/gpuqd/.libs/gpuqd" 2>/dev/null | grep -q asan; then
	echo "no measuring of memory under a sanitizer"
else
	test_set_prereq MEMORY
fi

# last METHOD JSON N EACH: that many calls, which end with let_go; ./refused has how many were refused
last() {
	rm -f go refused && mkfifo go
	/usr/bin/python3 "$test_source/tests/sharness/hostile.py" "$gpuqd_socket" lasting "$@" <go >refused 2>last.err 9>&- &
	last_pid=$!
	exec 9>go
	wait_for 60 test -s refused || { cat last.err; return 1; }
}
let_go() {
	exec 9>&-
	wait "$last_pid"
}
rss_kib() {
	sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$gpuqd_pid/status"
}
# readers: processes that read output for the daemon
readers() {
	n=0
	for reader in $(tagged); do
		if tr '\0' ' ' <"/proc/$reader/cmdline" 2>/dev/null | grep -q -e --read-output; then n=$((n + 1)); fi
	done
	echo $n
}

test_expect_success 'a daemon that remembers some thousand events' '
	start_gpuqd && echo "{command: [a], hold: true, cpus: 0, begin: \"2999-01-01T00:00:00Z\"}" >one.yaml &&
	/usr/bin/python3 -c "print(open(\"one.yaml\").read().join([\"---\n\"] * 1001))" >many.yaml &&
	gpuq submit many.yaml >ids && gpuq release --me >out && gpuq hold --me >out && gpuq release --me >out && gpuq hold --me >out &&
	gpuq events --json >events && test "$(wc -l <events)" -ge 4000
'

test_expect_success MEMORY 'nobody reads 480 times all of them' '
	before=$(rss_kib) && last event.watch "{\"since_us\": 1}" 4 120 && test "$(cat refused)" = 0 && gpuq release --me >out && gpuq hold --me >out &&
	grew=$(($(rss_kib) - before)) && echo "grew by $grew KiB" && test $grew -lt 65536 && let_go
'

test_expect_success 'more of them than a user may have are refused, and short calls are not' '
	last event.watch "{}" 5 120 && test "$(cat refused)" = 88 && exits 0 gpuq queue && let_go && wait_for 60 eval "test \$(gpuq diag --json | json rpc.open_calls) -le 1" &&
	last event.watch "{}" 1 100 && test "$(cat refused)" = 0 && let_go
'

test_expect_success 'who reads nothing is told that events were lost, once those that are kept have gone by' '
	cat >slow.py <<-END && /usr/bin/python3 slow.py "$gpuqd_socket" >slow.out && cat slow.out && says slow.out "^64 events, then lagged"
	import subprocess, sys
	sys.path.insert(0, "$test_source/tests/sharness")
	sys.path.insert(0, "$test_source/tests/unit/cli")
	sys.dont_write_bytecode = True
	import hostile
	from fake import Reader
	s = hostile.greeted()
	s.sendall(hostile.pack([0, 2, "event.watch", [{}]]))
	for i in range(9):
	    subprocess.run(["gpuq", "release", "--me"], stdout=subprocess.DEVNULL, check=True)
	    subprocess.run(["gpuq", "hold", "--me"], stdout=subprocess.DEVNULL, check=True)
	reader, n = Reader(s), 0
	while True:
	    m = reader.value()
	    if m[0] == 2 and m[1] == "\$/item":
	        n += 1
	    elif m[0] == 1 and m[1] == 2:
	        print(n, "events, then", m[2]["name"])
	        break
	END
'

test_expect_success 'output: so many processes that read it, and no more' '
	id=$(sh_job "echo begun; exec sleep 1000" -o own) && wait_for 60 test -s own && last job.logs "{\"id\": $id, \"follow\": true}" 5 120 &&
	test "$(cat refused)" = 88 && wait_for 60 eval "test \$(readers) = 512" && exits 0 gpuq queue && let_go && wait_for 60 eval "test \$(readers) = 0" &&
	gpuq logs "$id" >out && says out "^begun$" && gpuq cancel "$id"
'

test_expect_success 'end' '
	gpuq cancel --me >out && stop_gpuqd
'

test_done
