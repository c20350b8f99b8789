#!/bin/sh
test_description='what a local job used is measured, stored with it and shown'
. "$(dirname "$0")/lib.sh"

# used ID KEY: a number of what it used
used() {
	job "$1" "used.$2"
}

# cpu ID: user and system time, in ms
cpu() {
	echo $(($(used "$1" user_ms) + $(used "$1" system_ms)))
}

# about LEAST MOST NUMBER
about() {
	test "$3" -ge "$1" && test "$3" -le "$2" || { echo "$3 is not between $1 and $2"; return 1; }
}

# Half a second of CPU time in a child of the script, and 64 MiB.
cat >work.py <<-\END
	import os, resource
	keep = bytearray(64 << 20)
	while sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) < 0.5:
	    pass
END

test_expect_success 'CPU time and memory of all its processes' '
	start_gpuqd && id=$(sh_job "/usr/bin/python3 work.py; true" -c 1) && gpuq wait "$id" && job_is "$id" state COMPLETED &&
	about 400 60000 "$(cpu "$id")" && about 67108864 1000000000 "$(used "$id" memory_bytes)" &&
	about 0 1000000000 "$(used "$id" written_bytes)"
'

test_expect_success 'also of one that failed, and of one that was killed at its end' '
	bad=$(sh_job "/usr/bin/python3 work.py; exit 3") && test_expect_code 3 gpuq wait "$bad" && about 400 60000 "$(cpu "$bad")" &&
	long=$(sh_job "/usr/bin/python3 work.py; touch spent; sleep 600") && wait_for 60 test -e spent && gpuq cancel "$long" &&
	job_becomes "$long" CANCELLED && about 400 60000 "$(cpu "$long")"
'

test_expect_success 'what never ran, or still runs, has none: null, not 0' '
	held=$(sh_job "true" --hold) && test "$(job "$held" used)" = null && gpuq cancel "$held" && test "$(job "$held" used)" = null &&
	live=$(sh_job "until [ -e go ]; do sleep 0.1; done") && job_becomes "$live" RUNNING && test "$(job "$live" used)" = null && touch go && gpuq wait "$live"
'

test_expect_success 'it outlives a kill, and is that of the last attempt' '
	before=$(job "$id" used) && kill_gpuqd && start_gpuqd && test "$(job "$id" used)" = "$before" &&
	twice=$(sh_job "[ -e second ] || { touch second; /usr/bin/python3 work.py; exit 1; }" --retry 1) && gpuq wait "$twice" &&
	job_is "$twice" attempt 1 && about 0 300 "$(cpu "$twice")"
'

test_expect_success 'status, history and usage show it; devices that are not measured are not shown' '
	gpuq status "$id" >out && says out "^Used CPU .*user" && says out "^Used memory *at most" && ! grep "Used GPUs" out &&
	gpuq history -h -o JOBID,CPU_TIME,MAX_MEMORY,GPU_BUSY >out && says out "^ *$id +[0-9:]+ .*iB +-$" &&
	gpuq usage -j "$id,$bad" >out && test "$(grep -c "^Used CPU" out)" = 2 && gpuq usage --json -j "$id" >out && test "$(json used.user_ms <out)" = "$(used "$id" user_ms)" &&
	test_expect_code 254 gpuq usage -j 999 && stop_gpuqd
'

test_done
