#!/bin/sh
test_description='acts on thousands of jobs, in many turns: each job once, whatever happens between'
. "$(dirname "$0")/lib.sh"

# held NAME TIMES: so many thousand jobs on hold; without a hold they wait, as there is no device
held() {
	for _ in $(seq 1000); do
		printf -- '---\n{name: %s, gpus: 1, hold: true, command: [a]}\n' "$1"
	done >"$1.yaml" && for _ in $(seq "$2"); do
		gpuq submit "$1.yaml" >/dev/null || return 1
	done
}

# in_history NAME: how many jobs of that name, and how many of them are there more than once
in_history() {
	gpuq history -h -n "$1" -o JOBID --limit 99999 >ids && echo "$(wc -l <ids) $(sort ids | uniq -d | wc -l)"
}

test_expect_success 'thousands are held, released and cancelled by name, each of them once' '
	start_gpuqd --gpus 0 && held many 5 && test "$(gpuq release --dry-run -n many --json | json matched)" = 5000 &&
	test "$(gpuq release -n many --json | json matched)" = 5000 && test "$(gpuq hold -n many --json | json matched)" = 5000 &&
	test "$(gpuq cancel -n many --json | json matched)" = 5000 && gpuq queue -h -n many >out && test_must_be_empty out &&
	wait_for 60 eval "test \"\$(in_history many)\" = \"5000 0\""
'

test_expect_success 'one goes before thousands of his own, who lose together what it gains' '
	held rank 1 && last=$(gpuq queue -h -n rank -o JOBID | tail -n 1 | tr -d " ") &&
	wait_for 60 eval "gpuq prio -h -j $last -o PLACE | grep -qw 1000" && gpuq update --top "$last" &&
	wait_for 60 eval "gpuq prio -h -j $last -o PLACE | grep -qw 1" && gpuq cancel -n rank && stop_gpuqd
'

# Elements start and end all the time; whoever waited when the array was named is cancelled, also if
# it has started by then.
test_expect_success 'an array that is cancelled by name while its elements start and end' '
	start_gpuqd --gpus 16 && echo "{name: busy, gpus: 1, array: 0-299, command: [sleep, \"0.05\"]}" >busy.yaml &&
	id=$(gpuq submit --parsable busy.yaml) && wait_for 60 eval "gpuq history -h -n busy | grep -q COMPLETED" &&
	gpuq cancel -n busy && wait_for 60 eval "gpuq queue -h -n busy >left && ! test -s left" &&
	exits 252 gpuq wait "$id" &&
	gpuq history -h -j "$id" -o JOBID --limit 99999 | sort | uniq -d >twice && test ! -s twice
'

test_expect_success 'whoever waits for a thousand hears of all of them' '
	held hear 1 && gpuq queue -h -n hear -o JOBID >hear.ids && { (exits 252 gpuq wait $(cat hear.ids) && touch heard) & } && waiter=$! &&
	wait_for 60 eval "test \"\$(gpuq queue -h -n hear | wc -l)\" = 1000" && sleep 1 && gpuq cancel -n hear && wait $waiter && test -e heard
'

test_expect_success 'the longest turn is told with who had it, and is counted anew for an operator' '
	gpuq diag --json >diag.json && test "$(json loop.most_us <diag.json)" -gt 0 && grep -q "\"job.cancel\":{\"most_us\":" diag.json &&
	gpuq status --json | grep -q "\"longest_part\":\"" && gpuq diag --reset >/dev/null && gpuq diag --json >diag.json &&
	test "$(json loop.turns <diag.json)" -lt 100 && ! grep -q "job.cancel" diag.json && stop_gpuqd
'

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS
test_expect_success FAILPOINTS 'killed in the middle: what was done stays done, the rest waits, and is cancelled the next time' '
	GPUQ_FAILPOINT="act.done:4500=kill" start_gpuqd --gpus 0 && held cut 5 && ! gpuq cancel -n cut &&
	{ wait "$gpuqd_pid"; true; } && start_gpuqd --gpus 0 && left=$(gpuq queue -h -n cut | wc -l) && test "$left" -gt 0 &&
	test "$left" -lt 1000 && test "$(in_history cut)" = "$((5000 - left)) 0" &&
	test "$(gpuq cancel -n cut --json | json matched)" = "$left" && wait_for 60 eval "test \"\$(in_history cut)\" = \"5000 0\""
'

test_expect_success FAILPOINTS 'what sums are made of is whole, however long it is' '
	gpuq history -h --limit 100000 -o JOBID >all && test "$(wc -l <all)" -gt 10000 &&
	test "$(gpuq slurm sacct -X -n -S now-1hours -o JobID | wc -l)" = "$(wc -l <all)" && stop_gpuqd
'

test_done
