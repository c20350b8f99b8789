#!/bin/sh
test_description='arrays: one record, many jobs, so many at once'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' '
	start_gpuqd
'

test_expect_success 'elements run, each knows its index, no more at once than allowed' '
	mkdir run && cat >array.sh <<-\END &&
	#!/bin/sh
	#GPUQ --array=0-5%2
	mkdir "$PLACE/$GPUQ_ARRAY_TASK_ID" || exit 90
	ls "$PLACE" | wc -l >>"$PLACE.counts"
	sleep 0.3
	rmdir "$PLACE/$GPUQ_ARRAY_TASK_ID"
	exit $((GPUQ_ARRAY_TASK_ID / 5))
	END
	id=$(PLACE=$PWD/run gpuq submit --parsable array.sh) &&
	exits 1 gpuq wait "$id" &&
	test "$(wc -l <run.counts)" = 6 && test "$(sort -n run.counts | tail -n 1)" -le 2
'

test_expect_success 'the highest exit code is that of the array' '
	says err "^gpuq-result: .*\"state\":\"FAILED\"" &&
	job_is "${id}_5" exit_code 1 && job_is "${id}_0" exit_code 0
'

test_expect_success 'an element is an object of its own' '
	job_is "${id}_3" array_index 3 && job_is "${id}_3" id "$id" && job_is "${id}_3" state COMPLETED
'

test_expect_success 'the queue has one line for what waits and one for each that runs' '
	id=$(printf "#!/bin/sh\nsleep 300\n" | submit --array 1-9%2 -g 1 -) &&
	wait_for 60 eval "test \$(gpuq queue -h -t R | wc -l) = 2" &&
	test "$(gpuq queue -h | wc -l)" = 3 &&
	gpuq queue --json >q.json && test "$(wc -l <q.json)" = 3 &&
	test "$(grep -c "\"state\":\"PENDING\"" q.json)" = 1 &&
	test "$(grep "\"state\":\"PENDING\"" q.json | json array.size)" = 9 &&
	test "$(grep "\"state\":\"PENDING\"" q.json | json array.throttle)" = 2 &&
	test "$(grep "\"state\":\"PENDING\"" q.json | json reason)" = ArrayLimit &&
	test "$(gpuq queues --json | json pending_jobs)" = 7
'

test_expect_success 'one element is cancelled, another takes its place' '
	gpuq cancel "${id}_1" && job_becomes "${id}_1" CANCELLED && job_becomes "${id}_3" RUNNING &&
	job_is "${id}_2" state RUNNING
'

test_expect_success 'all of it is cancelled' '
	gpuq cancel "$id" && wait_for 60 eval "test \$(in_queue) = 0" && job_is "${id}_9" state CANCELLED &&
	exits 252 gpuq wait "$id"
'

test_expect_success 'no such element' '
	exits 254 gpuq status "${id}_77" && says err "no such job: ${id}_77" && exits 254 gpuq events "${id}_77" && says err "job: ${id}_77" &&
	exits 0 gpuq events "${id}_1"
'

for bad in 0-99999999 5-1 a-b 1- 1-5%0 ''; do
	test_expect_success "refused: --array '$bad'" '
		printf "#!/bin/sh\ntrue\n" >s.sh && test_must_fail gpuq submit --array "$bad" s.sh 2>err && says err "array"
	'
done

test_expect_success 'a restart knows which elements have run' '
	mkdir again && id=$(printf "#!/bin/sh\necho x >>\"%s/again/\$GPUQ_ARRAY_TASK_ID\"; sleep 0.2\n" "$PWD" |
		submit --array 0-19%4 -g 1 -) &&
	wait_for 60 test -e again/3 && kill_gpuqd && start_gpuqd &&
	exits 0 gpuq wait "$id" && test "$(ls again | wc -l)" = 20 && test "$(cat again/* | wc -l)" = 20 &&
	stop_gpuqd
'

test_done
