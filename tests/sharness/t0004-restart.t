#!/bin/sh
test_description='the daemon goes and comes back: no job is lost, none runs twice'
. "$(dirname "$0")/lib.sh"

# A job that tells each time that it begins, and ends when it is told to.
patient='echo "$$" >>"$OLDPLACE/begun"; until [ -e "$OLDPLACE/go" ]; do sleep 0.05; done; exit 7'
OLDPLACE=$PWD
export OLDPLACE

# once_more WHAT STOP: the daemon is ended by STOP while one job runs and one waits
once_more() {
	stop=$2
	test_expect_success "$1: a job runs and one waits" '
		rm -f begun go &&
		start_gpuqd &&
		running=$(sh_job "$patient" -g 3) && job_becomes "$running" RUNNING && wait_for 60 test -s begun &&
		waiting=$(sh_job "exit 5" -g 2) && job_is "$waiting" state PENDING &&
		gone=$(sh_job "exit 6") && job_becomes "$gone" FAILED
	'
	test_expect_success "$1: the job goes on without the daemon" '
		pid=$(cat begun) && $stop && kill -0 "$pid"
	'
	test_expect_success "$1: all three are known again" '
		start_gpuqd &&
		job_is "$running" state RUNNING && job_is "$waiting" state PENDING && job_is "$gone" exit_code 6 &&
		kill -0 "$pid" && test "$(wc -l <begun)" = 1
	'
	test_expect_success "$1: and end with their codes" '
		touch go &&
		exits 7 gpuq wait "$running" && exits 5 gpuq wait "$waiting" &&
		test "$(wc -l <begun)" = 1 && job_is "$running" attempt 0 &&
		wait_for 60 eval "test \$(free_gpus) = 4"
	'
	test_expect_success "$1: what ends while the daemon is away is not missed" '
		rm -f begun go && away=$(sh_job "$patient; exit 9") && job_becomes "$away" RUNNING &&
		wait_for 60 test -s begun && pid=$(cat begun) &&
		$stop && touch go && wait_for 60 eval "! kill -0 $pid" &&
		start_gpuqd && exits 7 gpuq wait "$away" &&
		job_is "$away" state FAILED && gpuq logs "$away"
	'
	test_expect_success "$1: numbers go on" '
		next=$(sh_job true) && test "$next" = $((away + 1)) && exits 0 gpuq wait "$next" && stop_gpuqd
	'
}

once_more 'SIGTERM' stop_gpuqd
once_more 'SIGKILL' kill_gpuqd

test_expect_success 'a submission that was answered survives a kill at once' '
	start_gpuqd &&
	for n in 1 2 3 4 5 6 7 8 9 10; do sh_job "exit $n" --hold || return 1; done >ids &&
	kill_gpuqd && test "$(wc -l <ids)" = 10 &&
	start_gpuqd &&
	for id in $(cat ids); do job_is "$id" state PENDING || return 1; done &&
	test "$(in_queue)" = 10 && gpuq cancel $(cat ids)
'

test_expect_success 'a second daemon on the same state is refused' '
	test_must_fail gpuqd --state "$PWD/state" --listen "unix:$TMPDIR/s2" --gpus 1 2>err &&
	says err "state" && gpuq version
'

test_expect_success 'a second daemon on the same socket is refused' '
	test_must_fail timeout 20 gpuqd --state "$PWD/state2" --listen "$GPUQ_SERVER" --cluster local --gpus 1 2>err &&
	gpuq version && stop_gpuqd
'

test_expect_success 'a damaged record is not taken for a good one' '
	cp -r state damaged &&
	/usr/bin/python3 - damaged <<-\END &&
	import os, sys
	for top, _, names in os.walk(sys.argv[1]):
	    for name in names:
	        path = os.path.join(top, name)
	        if os.path.islink(path) or not name.endswith(".mdb") or name.startswith("lock"): continue
	        data = bytearray(open(path, "rb").read())
	        at = data.find(b"exit 10")
	        if at < 0: continue
	        with open(path, "r+b") as f:
	            while at >= 0:
	                f.seek(at)
	                f.write(b"exit 11")
	                at = data.find(b"exit 10", at + 1)
	        print("damaged", path)
	END
	test_must_fail timeout 20 gpuqd --state "$PWD/damaged" --listen "unix:$TMPDIR/s3" --cluster local --gpus 1 2>err &&
	says err "[Cc]orrupt|check|CRC|damaged"
'

test_done
