#!/bin/sh
test_description='AC-CAL-1: a reservation ends the jobs that still run in it, on a daemon whose wall clock is set'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/clock.sh"

# The daemon sees a wall clock of a Monday to come; clock_to sets it.
TZ=UTC
export TZ
# saver OPTIONS: a job that saves itself when it is signalled, and asks to be started again
saver() {
	sh_job "trap \"echo saved >>saved.\$GPUQ_JOB_ID; exit 85\" USR1
touch up.\$GPUQ_JOB_ID; while :; do sleep 0.1; done" --checkpoint USR1@30s "$@"
}
# runs JOB: its program has set its trap
runs() {
	job_becomes "$1" RUNNING && wait_for 60 test -e "up.$1"
}
# evicted_once JOB: by the end of a reservation, and it had its signal
evicted_once() {
	wait_for 60 job_is "$1" evictions.0.rule reservation-ends && wait_for 60 test -e "saved.$1" &&
	test "$(wc -l <"saved.$1")" = 1 && job_is "$1" evictions.0.cause drain &&
	test "$(job "$1" evictions | grep -o rule | wc -l)" = 1
}
untouched() {
	job_is "$1" state RUNNING && job_is "$1" attempt 0 && test ! -e "saved.$1"
}
# Steps of the wall clock make no job older: one that began shortly before the signal is in no reservation.
aged() {
	test "$(date +%s)" -ge $((began + $1))
}
# reserved NAME QUEUE DURATION DEVICES OPTIONS: from 08:00; 15 of the 16 devices are
reserved() {
	name=$1 queue=$2 duration=$3 devices=$4
	shift 4
	exits 0 gpuq reserve "$name" --start 2035-03-05T08:00Z -t "$duration" -g "$devices" -q "$queue" "$@"
}

test_expect_success 'reservations from 08:00 on' '
	clock_to 08:00 && cat >site.yaml <<-END &&
	version: 1
	queues: [{name: b, quota: 0}, {name: c, quota: 0}, {name: d, quota: 1}, {name: e, quota: 0}, {name: f, quota: 0}, {name: g, quota: 0}]
	END
	clock_start 16 && reserved moved b 2h 11 && reserved keeps c 2h 1 --at-end keep && reserved down e 5h 1 && reserved deleted f 2h 1 &&
	reserved again g 1h 1 --every 12h &&
	gpuq export >out && says out "at_end: keep" && gpuq reservations --json moved >out && says out "\"at_end\": *\"evict\"" &&
	inside=$(saver -p b -g 1) && kept=$(saver -p c -g 1) && beside=$(saver -p d -g 1) && lost=$(saver -p e -g 1) &&
	free=$(saver -p f -g 1) && recurs=$(saver -p g -g 1) &&
	for j in $inside $kept $beside $lost $free $recurs; do runs "$j" || return 1; done && began=$(date +%s)
'

test_expect_success 'only a reservation with users may keep its jobs, and no external one' '
	exits 1 gpuq reserve x -t 2h -g 4 --at-end keep && says err "at_end: expected a queue or users" &&
	exits 1 gpuq reserve x -t 2d --external --pool default -w 1 -q b --at-end keep && says err "at_end: expected evict" &&
	exits 1 gpuq reserve x -t 2h -g 4 -q b --at-end drop && says err "at_end"
'

test_expect_success 'AC-CAL-1: at its end the jobs in it are signalled, their grace before, and queued again; others run on' '
	wait_for 120 aged 85 && clock_to 08:59:45 && evicted_once "$recurs" && job_is "$recurs" evictions.0.by null &&
	gpuq why "$recurs" >out && says out "he reservation that it ran in ends" && gpuq cancel "$recurs" &&
	for j in $inside $kept $beside $lost $free; do untouched "$j" || return 1; done
'

test_expect_success 'shortly before its end only what ends in time starts in it; a daemon that restarts forgets nothing' '
	clock_to 09:58:45 && late=$(saver -p b -g 2) && wait_for 60 job_is "$late" reason Reservation &&
	short=$(sh_job "exec sleep 900" -p b -g 2 -t 1m) && job_becomes "$short" RUNNING && job_is "$late" state PENDING &&
	kill_gpuqd && clock_start 16 && untouched "$inside" && job_is "$short" state RUNNING && gpuq cancel "$short"
'

test_expect_success 'moved to a later end it ends no job at the earlier one, deleted it ends none' '
	exits 0 gpuq reserve moved -t 4h && exits 0 gpuq reserve --delete deleted && clock_to 10:30 && job_becomes "$late" RUNNING &&
	for j in $inside $kept $beside $lost $free; do untouched "$j" || return 1; done && gpuq cancel "$late" "$free"
'

test_expect_success 'at the later end they are signalled; a daemon that is down at an end does it when it is back' '
	clock_to 11:59:45 && evicted_once "$inside" && gpuq cancel "$inside" && wait_for 120 aged 110 && untouched "$lost" &&
	kill_gpuqd && clock_to 12:59:58 && sleep 3 && clock_start 16 && evicted_once "$lost" && untouched "$kept" && untouched "$beside" &&
	gpuq cancel "$lost" "$kept" "$beside" && stop_gpuqd
'

test_done
