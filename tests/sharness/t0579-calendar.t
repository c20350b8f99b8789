#!/bin/sh
test_description='AC-CAL-1 on a daemon whose wall clock is set, and the calendar as a picture'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/clock.sh"

# The daemon, and the client for the picture, see a wall clock of a Monday to come; clock_to sets it.
TZ=UTC
export TZ
# firm OPTIONS: a job of queue a that is not preemptible
firm() {
	sh_job "exec sleep 900" -p a -g 1 --qos firm "$@"
}

test_expect_success 'start at 03:00, with 16 devices reserved for b from 08:00' '
	clock_to 03:00 && cat >site.yaml <<-END &&
	version: 1
	qos: [{name: firm, preemptible: false}]
	pools: [{name: big, selector: {size: big}}]
	queues: [{name: a, quota: 16}, {name: b, quota: 0}]
	END
	clock_start 16 && exits 0 gpuq reserve --start 2035-03-05T08:00Z --duration 72h --gpus 16 --queue b &&
	says out "reservation/b-1 added" && gpuq reservations -h -o STATE b-1 >out && says out planned
'

test_expect_success 'AC-CAL-1: at 03:59 a job of 4 h starts, at 04:01 it does not; one without a time limit never does' '
	clock_to 03:59 && early=$(firm -t 4h) && job_becomes "$early" RUNNING &&
	endless=$(firm) && wait_for 60 job_is "$endless" reason Reservation &&
	clock_to 04:01 && late=$(firm -t 4h) && wait_for 60 job_is "$late" reason Reservation &&
	gpuq why "$late" >out && says out b-1 && job_is "$endless" state PENDING && gpuq cancel "$early"
'

test_expect_success 'AC-CAL-1: when it begins, jobs of b run, although b has no share; others still wait' '
	theirs=$(sh_job "exec sleep 900" -p b -g 16 -t 10h) && wait_for 60 eval "test \$(job $theirs reason) != null" &&
	job_is "$theirs" state PENDING && clock_to 08:01 && job_becomes "$theirs" RUNNING &&
	gpuq reservations -h -o STATE b-1 >out && says out active && job_is "$late" state PENDING && job_is "$endless" state PENDING &&
	gpuq status >out && gpuq cancel "$theirs" "$late" "$endless"
'

test_expect_success 'the picture of the days' '
	exits 0 gpuq reserve course -g 4 -t 2h -q a --flags daily --start 2035-03-09T09:00Z --until 2035-03-14T00:00Z --except 2035-03-11 &&
	exits 0 gpuq reserve repair --pool default -t 2d --start 2035-03-16T00:00Z --flags maintenance &&
	shimmed gpuq reservations --calendar --days 14 >out && cat >expected <<-\END &&
	                      Mar
	                      Mon  Tue  Wed  Thu  Fri  Sat  Sun
	                        5    6    7    8    9   10   11
	pool default, 16 GPUs
	  repair                .    .    .    .    .    .    .
	any pool
	  b-1                 ~16   16   16  ~16    .    .    .
	  course                .    .    .    .   ~4   ~4    .

	                      Mar
	                      Mon  Tue  Wed  Thu  Fri  Sat  Sun
	                       12   13   14   15   16   17   18
	pool default, 16 GPUs
	  repair                .    .    .    .  m16  m16    .
	any pool
	  b-1                   .    .    .    .    .    .    .
	  course               ~4   ~4    .    .    .    .    .
	GPUs reserved on each day; ~ part of the day; m maintenance
	END
	test_cmp expected out
'

test_expect_success 'a pool that has no nodes is in the picture, and a number of days is one of it' '
	exits 0 gpuq reserve later -g 4 -t 1d -q a --pool big --start 2035-03-06T00:00Z &&
	shimmed gpuq reservations --days 3 later >out && cat >expected <<-\END &&
	                     Mar
	                     Mon Tue Wed
	                       5   6   7
	pool big, 0 GPUs
	  later                .   4   .
	GPUs reserved on each day; ~ part of the day; m maintenance
	END
	test_cmp expected out && exits 0 gpuq reserve --delete later
'

test_expect_success 'how often it comes again is in the list' '
	gpuq reservations -h -o NAME,EVERY >out && says out "b-1 *-$" && says out "course *1d$"
'

test_expect_success 'the same as JSON' '
	gpuq reservations --calendar --days 14 --json course | python3 -c "
import json, sys
v = json.loads(sys.stdin.read())
assert [o[\"start_time\"][:16] for o in v[\"occurrences\"]] == [
    \"2035-03-09T09:00\", \"2035-03-10T09:00\", \"2035-03-12T09:00\", \"2035-03-13T09:00\"], v
assert v[\"pools\"] == {\"\": 4}, v" && stop_gpuqd
'

test_done
