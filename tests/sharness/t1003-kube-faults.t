#!/bin/sh
test_description='on a real apiserver: what goes wrong outside of gpuq'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube-shared.sh"

test_expect_success 'start' '
	make_namespace && make_nodes n1 gpus=8 && make_nodes n2 gpus=8 && start_kube_gpuqd &&
	wait_for 30 eval "test \$(gpuq nodes --json | json name | grep -c \"$test_namespace\") = 2"
'

# only NODE: jobs that follow go there
only() {
	pod_fields="\"nodeSelector\": {\"kubernetes.io/hostname\": \"$test_namespace-$1\"},"
}

test_expect_success 'a pod that somebody deletes: another attempt, since it was not the job that failed' '
	id=$(pod_job victim 1 gpuq.test/hang=true) && job_becomes "$id" RUNNING &&
	kube delete "$test_namespace/pods/$(job "$id" pods.0.name)" &&
	wait_for 60 eval "test \"\$(job $id attempt)\" = 1 && test \"\$(job $id state)\" = RUNNING" &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED
'

test_expect_success 'a node that rejects: another attempt elsewhere, at nobody'"'"'s cost' '
	cluster reject "$test_namespace-n1" && cluster reject "$test_namespace-n2" &&
	id=$(pod_job refused 8 gpuq.test/run=0s) &&
	wait_for 60 eval "test \"\$(job $id attempt)\" -ge 1" &&
	cluster unreject "$test_namespace-n1" && cluster unreject "$test_namespace-n2" &&
	exits 0 gpuq wait "$id"
'

test_expect_success 'the apiserver restarts: nothing is lost, nothing runs twice' '
	run=$(pod_job run 1 gpuq.test/run=4s) && job_becomes "$run" RUNNING &&
	cluster restart-apiserver && exits 0 gpuq wait "$run" && job_is "$run" attempt 0 && test "$(n_pods_of "$run")" = 1 &&
	id=$(pod_job after 1 gpuq.test/run=0s) && exits 0 gpuq wait "$id"
'

test_expect_success 'history is forgotten: gpuqd lists anew' '
	run=$(pod_job run 1 gpuq.test/run=3s) && job_becomes "$run" RUNNING && cluster forget &&
	exits 0 gpuq wait "$run" && job_is "$run" attempt 0
'

test_expect_success 'the apiserver is away: submissions are taken, what is known is marked as old' '
	run=$(pod_job run 1 gpuq.test/hang=true) && job_becomes "$run" RUNNING && cluster stop-apiserver &&
	id=$(pod_job later 1 gpuq.test/run=0s) &&
	wait_for 60 eval "test \"\$(gpuq status --json | json cluster.stale_since)\" != null" &&
	job_is "$run" state RUNNING && job_is "$id" state PENDING || job_is "$id" state STARTING
'

test_expect_success 'it comes back: they run' '
	cluster start-apiserver && exits 0 gpuq wait "$id" && job_is "$id" attempt 0 && job_is "$run" state RUNNING &&
	wait_for 60 eval "test \"\$(gpuq status --json | json cluster.stale_since)\" = null" &&
	gpuq cancel "$run" && job_becomes "$run" CANCELLED
'

test_expect_success 'gpuqd and the apiserver are away at once' '
	run=$(pod_job run 1 gpuq.test/run=2s) && job_becomes "$run" RUNNING && cluster stop-apiserver && kill_gpuqd &&
	start_kube_gpuqd && job_is "$run" state RUNNING && gpuq nodes >out && says out "$test_namespace-n1" &&
	id=$(pod_job dark 1 gpuq.test/run=0s) && cluster start-apiserver && exits 0 gpuq wait "$run" "$id" &&
	job_is "$run" attempt 0
'

test_expect_success 'a silent node: its job waits, strictly' '
	only n1 && filler=$(pod_job filler 8 gpuq.test/hang=true) && pod_fields= && job_becomes "$filler" RUNNING &&
	id=$(pod_job there 1 gpuq.test/hang=true) && job_becomes "$id" RUNNING &&
	job_is "$id" pods.0.node "$test_namespace-n2" && gpuq cancel "$filler" && job_becomes "$filler" CANCELLED &&
	cluster node-down "$test_namespace-n2" &&
	wait_for 60 eval "gpuq nodes --json | grep $test_namespace-n2 | grep -E \"\\\"state\\\":\\\"(down|suspect)\\\"\"" &&
	job_is "$id" attempt 0 && job_is "$id" state RUNNING &&
	other=$(pod_job other 8 gpuq.test/run=0s) && exits 0 gpuq wait "$other" && job_is "$other" pods.0.node "$test_namespace-n1"
'

test_expect_success 'it comes back, the job goes on' '
	cluster node-up "$test_namespace-n2" &&
	wait_for 60 eval "gpuq nodes --json | grep $test_namespace-n2 | grep -E \"\\\"state\\\":\\\"(mixed|alloc|idle)\\\"\"" &&
	job_is "$id" state RUNNING && job_is "$id" attempt 0
'

test_expect_success 'a node that is gone for good: the job gets another place' '
	cluster node-down "$test_namespace-n2" && cluster delete-node "$test_namespace-n2" &&
	kube delete "$test_namespace/pods/$(job "$id" pods.0.name)" --grace 0 &&
	wait_for 90 eval "test \"\$(job $id attempt)\" = 1 && test \"\$(job $id state)\" = RUNNING" &&
	job_is "$id" pods.0.node "$test_namespace-n1" && gpuq cancel "$id" && job_becomes "$id" CANCELLED
'

test_expect_success 'end' '
	stop_gpuqd
'

test_done
