#!/bin/sh
test_description='what happened to a job is written down with it'
. "$(dirname "$0")/lib.sh"

# told JOB: the events of a job, one a line
told() {
	gpuq events --json "$1" | json event
}

test_expect_success 'from submission to end, with who and why' '
	start_gpuqd && held=$(sh_job "until [ -e seen ]; do sleep 0.1; done; exit 3" -g 1 --hold) &&
	gpuq hold "$held" && gpuq release "$held" && job_becomes "$held" RUNNING && touch seen && job_becomes "$held" FAILED &&
	cat >want <<-END &&
	job.submitted
	job.held
	job.released
	job.placed
	pod.created
	pod.started
	job.started
	pod.ended
	job.ended
	END
	told "$held" >got && test_cmp want got &&
	gpuq events --json "$held" | tail -n 1 >last && test "$(json state <last)" = FAILED &&
	test "$(json exit_code <last)" = 3 && test "$(gpuq events --json "$held" | head -n 1 | json who)" = "$(id -un)" &&
	gpuq events -h -o EVENT,JOB,DETAIL "$held" | grep "job.placed *$held *.*gpus=1 nodes="
'

test_expect_success 'of an array, each element' '
	array=$(sh_job "exit 0" --array 0-2) && gpuq wait "$array" &&
	test "$(told "$array" | grep -c "job.placed")" = 3 && test "$(told "${array}_1" | grep -c "job.placed")" = 1 &&
	test "$(told "${array}_1" | head -n 1)" = job.submitted
'

test_expect_success 'following goes on until the job has ended' '
	live=$(sh_job "until [ -e go ]; do sleep 0.1; done" -g 1) && job_becomes "$live" RUNNING &&
	{ timeout 60 gpuq events -f "$live" >followed & } && follower=$! &&
	wait_for 60 says followed job.started && touch go && wait $follower &&
	head -n 1 followed | grep "^TIME  *EVENT  *JOB" && tail -n 1 followed | grep "job.ended .*state=COMPLETED" &&
	test "$(grep -c pod.started followed)" = 1
'

test_expect_success 'following a job that never starts ends with it, too' '
	wait=$(sh_job "exit 0" -g 4 --hold) && rm followed && { timeout 60 gpuq events -f "$wait" >followed & } && follower=$! &&
	wait_for 60 says followed job.submitted && gpuq cancel "$wait" && wait $follower &&
	tail -n 1 followed | grep "job.ended .*state=CANCELLED" && gpuq events -f "$wait" | tail -n 1 | grep CANCELLED
'

test_expect_success 'of late, of everything' '
	gpuq events --json | json event | grep -c job.ended >n && test "$(cat n)" -ge 5 &&
	gpuq events --since 1h -o EVENT,WHO | grep "job.cancel_asked *$(id -un)" &&
	gpuq events --limit=2 --json >two && test "$(wc -l <two)" = 2
'

test_expect_success 'it outlives a kill, and goes with the job' '
	told "$held" >got && kill_gpuqd && start_gpuqd && told "$held" >again && test_cmp got again && stop_gpuqd &&
	echo "history_keep: 1s" >gpuqd.yaml && start_gpuqd --config gpuqd.yaml &&
	wait_for 60 eval "test_expect_code 254 gpuq events $held" && stop_gpuqd
'

test_expect_success 'a signal ends --follow while nothing happens' '
	start_gpuqd && for signal in INT TERM; do
		exits 0 timeout --preserve-status -k 60 -s $signal 1 gpuq events -f || return 1
	done && stop_gpuqd
'

test_expect_success 'wrong use' '
	start_gpuqd && test_expect_code 254 gpuq events 999 && test_expect_code 2 gpuq events x &&
	test_expect_code 2 gpuq events -f --audit && test_expect_code 2 gpuq events -u ann &&
	test_expect_code 2 gpuq events --since never && stop_gpuqd
'

test_done
