#!/bin/sh
test_description='jobs that have ended are listed, all of them'
. "$(dirname "$0")/lib.sh"

test_expect_success 'more than one client takes at once' '
	start_gpuqd &&
	/usr/bin/python3 -c "
for n in range(400): print(\"---\\n{name: j%d, command: [a], hold: true}\" % n)" >many.yaml &&
	submit many.yaml >ids && test "$(wc -l <ids)" = 400 && gpuq cancel --name "j*" 2>/dev/null;
	gpuq cancel $(cat ids) && wait_for 60 eval "test \$(in_queue) = 0"
'

test_expect_success 'each is there once, the newest first' '
	gpuq queue -a --json | json id >listed && sort -n ids >want && sort -n listed | cmp - want &&
	sort -nr listed | cmp - listed
'

test_expect_success 'a limit takes the newest' '
	gpuq queue -a --json --limit=3 | json id >listed && tail -n 3 want | sort -nr | cmp - listed
'

test_expect_success 'as they are listed after a restart' '
	kill_gpuqd && start_gpuqd && gpuq queue -a --json | json id | sort -n | cmp - want && stop_gpuqd
'

test_done
