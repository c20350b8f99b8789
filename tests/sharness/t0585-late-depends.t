#!/bin/sh
test_description='dependencies on elements that have just ended, before that is on the disk'
. "$(dirname "$0")/lib.sh"

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

# element_left INDEX: its pod has gone, and with that it leaves memory
element_left() {
	for element_dir in state/local/*-"$first-$1"-0-0; do
		[ ! -e "$element_dir" ] || return 1
	done
}

# Every commit takes a second: the window in which an ended element is neither in memory nor in the history.
test_expect_success FAILPOINTS 'an element that succeeded counts as such beside one that failed' '
	GPUQ_FAILPOINT="store.commit:*=delay:1000" start_gpuqd &&
	first=$(sh_job "test \$GPUQ_ARRAY_TASK_ID != 1 || exit 1
		until test -e go.\$GPUQ_ARRAY_TASK_ID; do sleep 0.05; done" --array 0-2) &&
	job_becomes "${first}_1" FAILED && job_becomes "${first}_0" RUNNING && job_becomes "${first}_2" RUNNING && touch go.0 &&
	wait_for 60 grep -q "job.ended job=$first index=0 state=COMPLETED" gpuqd.log && wait_for 60 element_left 0 &&
	corr=$(sh_job true --array 0-2 --dependency "aftercorr:$first") &&
	job_becomes "${corr}_0" COMPLETED && wait_for 60 job_is "${corr}_1" reason DependencyNever &&
	touch go.2 && wait_for 60 grep -q "job.ended job=$first index=2 state=COMPLETED" gpuqd.log && wait_for 60 element_left 2 &&
	ok=$(sh_job true --dependency "afterok:${first}_2") && job_becomes "$ok" COMPLETED && job_becomes "${corr}_2" COMPLETED &&
	kill_gpuqd
'

# Elements that were cancelled while pending have no record of their own.
test_expect_success 'an element that was cancelled while pending never succeeds, also after a restart' '
	rm -f go.* && start_gpuqd && first=$(sh_job "until test -e go.0; do sleep 0.05; done" --array 0-3%1) && job_becomes "${first}_0" RUNNING &&
	gpuq cancel "${first}_2" && gpuq cancel --state PENDING "$first" && job_is "${first}_0" state RUNNING &&
	late=$(sh_job true --array 0-3 --dependency "aftercorr:$first") && wait_for 60 job_is "${late}_1" reason DependencyNever &&
	kill_gpuqd && start_gpuqd && again=$(sh_job true --dependency "afterok:${first}_3") &&
	wait_for 60 job_is "$again" reason DependencyNever && never=$(sh_job true --dependency "afternotok:${first}_1") &&
	job_becomes "$never" COMPLETED && touch go.0 && job_becomes "${late}_0" COMPLETED && stop_gpuqd
'

test_done
