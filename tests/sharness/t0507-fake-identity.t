#!/bin/sh
test_description='the cluster of the store, and another one under its name'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

refused() {
	grep -q cluster.other gpuqd.log
}

test_expect_success 'a daemon gets to know its cluster; a job runs there' '
	start_fake && start_fake_gpuqd && a=$(fake_job hang=true -g 1) && job_becomes "$a" RUNNING && kill_gpuqd
'

test_expect_success 'the same cluster after a restart' '
	start_fake_gpuqd && job_is "$a" state RUNNING && ! refused && kill_gpuqd
'

test_expect_success 'another cluster: the job is not lost, nothing is done, and it says how to go on' '
	stop_fake && start_fake --audit "$PWD/audit2" && start_gpuqd --kubeconfig "$PWD/kubeconfig" && wait_for 60 refused && grep -q -e --adopt-cluster gpuqd.log &&
	sleep 1 && job_is "$a" state RUNNING && is_stale && b=$(fake_job run=300ms -g 1) && sleep 1 && job_is "$b" state PENDING &&
	! grep "\"resource\":\"pods\"" audit2 && kill_gpuqd
'

test_expect_success 'told to go on: what ran in the old one runs again here, and what waited runs' '
	start_gpuqd --kubeconfig "$PWD/kubeconfig" --adopt-cluster && wait_for 60 is_fresh && exits 0 gpuq wait "$b" &&
	job_becomes "$a" RUNNING && job_is "$a" attempt 1 && kill_gpuqd && start_fake_gpuqd && job_is "$a" state RUNNING &&
	gpuq cancel "$a"
'

test_done
