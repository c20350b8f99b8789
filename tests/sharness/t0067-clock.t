#!/bin/sh
test_description='the wall clock is set while jobs run: limits, charges, begin, deadline, times that are shown'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/clock.sh"

# The daemon and the programs it starts see another wall clock, which clock_by sets. The machine's own stays.
# server_time OFFSET: the server's wall clock OFFSET seconds from now
server_time() {
	date -u -d "@$(($(date +%s) + $(cat clock) + $1))" +%Y-%m-%dT%H:%M:%SZ
}
# sees OFFSET: the daemon shows the wall clock that was set
sees() {
	gpuq diag --json >diag.json && /usr/bin/python3 - "$1" <<-'END'
		import calendar, json, sys, time
		shown = json.load(open("diag.json"))["process"]["now_time"]
		if isinstance(shown, str): shown = calendar.timegm(time.strptime(shown[:19], "%Y-%m-%dT%H:%M:%S"))
		off = shown - time.time()
		assert abs(off - int(sys.argv[1])) < 60, off
	END
}
# charged ID: GPU-seconds are no more than what the test took, and its start is not after its end
charged() {
	gpuq status "$1" --json >job.out && /usr/bin/python3 - $(($(date +%s) - began + 60)) <<-'END'
		import json, sys
		j = json.load(open("job.out"))
		assert 0 <= j["gpu_seconds"] <= int(sys.argv[1]), j["gpu_seconds"]
		times = [t for t in (j["submit_time"], j["start_time"], j["end_time"]) if t]
		assert times == sorted(times), times
	END
}
# runs ID: it still does, for at least four of the daemon's looks at limits
runs() {
	for runs_i in 1 2 3 4; do
		sleep 1 && job_is "$1" state RUNNING || return 1
	done
}
# shown_start ID OFFSET: it started at some time of this test, by a clock that is OFFSET ahead
shown_start() {
	gpuq status "$1" --json >job.out && /usr/bin/python3 - "$2" "$began" <<-'END'
		import calendar, json, sys, time
		start = json.load(open("job.out"))["start_time"]
		start = calendar.timegm(time.strptime(start[:19], "%Y-%m-%dT%H:%M:%S")) - int(sys.argv[1])
		assert int(sys.argv[2]) - 60 <= start <= time.time() + 60, start - time.time()
	END
}

test_expect_success 'start, and a job with a time limit of half an hour' '
	began=$(date +%s) && clock_by 0 && cat >site.yaml <<-END &&
	version: 1
	queues:
	- {name: main, budget: {gpu_minutes: 600, period: month}}
	END
	clock_start 4 && long=$(sh_job "sleep 900" -g 1 -t 30m) && job_becomes "$long" RUNNING
'

test_expect_success 'an hour forth: the job goes on, and an hour is not charged' '
	clock_by 3600 && wait_for 60 sees 3600 && runs "$long" && charged "$long" && shown_start "$long" 3600 &&
	gpuq report --since "$(server_time -7200)" --json >usage.out && says usage.out gpu_seconds &&
	! grep -E "\"gpu_seconds\": *[0-9]{4}" usage.out
'

test_expect_success 'the jump is in the log, in diag and what doctor warns of' '
	says gpuqd.log "clock.jump.* by_s=3[56][0-9][0-9]" && gpuq diag >out && says out "clock.jumps +1" &&
	{ LD_PRELOAD=$clock_shim gpuq doctor >out 2>&1 || :; } && says out "clocks agree" && says out "wall clock jumped 1 times, last by \\+3[56][0-9][0-9] s"
'

test_expect_success 'begin and deadline follow the clock as it is now' '
	soon=$(sh_job "exit 0" -g 1 -t 1m --begin "$(server_time 5)") && job_becomes "$soon" COMPLETED && charged "$soon" &&
	dead=$(sh_job "sleep 900" -g 1 -t 20m --deadline "$(server_time 1500)") && job_becomes "$dead" RUNNING &&
	never=$(sh_job "exit 0" -g 4 -t 1m --deadline "$(server_time 1500)") && gpuq hold "$never" &&
	later=$(sh_job "exit 0" -g 1 -t 1m --begin "$(server_time 7000)") && job_becomes "$later" PENDING &&
	wait_for 60 job_is "$later" reason BeginTime &&
	gpuq reserve kept --start "$(server_time 5400)" --duration 12h --gpus 1 --queue main && gpuq reservations --json >kept &&
	test "$(json state <kept)" = planned
'

test_expect_success 'two hours more: what was to begin begins, a reservation too, what had a deadline ends by it' '
	clock_by 10800 && job_becomes "$later" COMPLETED && job_becomes "$dead" DEADLINE && job_becomes "$never" DEADLINE &&
	charged "$dead" && charged "$later" && runs "$long" && gpuq reservations --json >out && test "$(json state <out)" = active &&
	test "$(json start_time <out)" = "$(json start_time <kept)"
'

test_expect_success 'back, an hour behind, and behind while the daemon is down: the job goes on' '
	clock_by -3600 && wait_for 60 sees -3600 && runs "$long" && charged "$long" && shown_start "$long" -3600 &&
	stop_gpuqd && clock_by 7200 && clock_start 4 && wait_for 60 sees 7200 && runs "$long" && charged "$long" &&
	shown_start "$long" 7200 && says gpuqd.log "clock.jump.* by_s=10[78]"
'

test_expect_success 'a kill of the daemon and an end while it is down: charged by the clock of the boot' '
	short=$(sh_job "sleep 3" -g 1 -t 10m) && job_becomes "$short" RUNNING && kill_gpuqd && sleep 4 && clock_by -7200 && clock_start 4 &&
	job_becomes "$short" COMPLETED && charged "$short" && shown_start "$short" -7200 && job_is "$long" state RUNNING
'

test_expect_success 'a time limit is reached by the clock of the boot' '
	limited=$(sh_job "sleep 900" -g 1 -t 5s) && job_becomes "$limited" RUNNING && clock_by -86400 && job_becomes "$limited" TIMEOUT &&
	charged "$limited" && gpuq cancel "$long" && job_becomes "$long" CANCELLED && charged "$long"
'

test_expect_success 'reports and history hold what was used' '
	gpuq queues --json >out && ! grep -E "\"used[a-z_]*\": *[0-9]{4}" out && gpuq history --json --since "$(server_time -90000)" >out &&
	says out "\"id\": *$long" && stop_gpuqd
'

test_done
