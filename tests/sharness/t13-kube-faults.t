#!/bin/sh
test_description='real control plane: pods and nodes that go, an apiserver that is away or has forgotten'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --nodes 2 --gpus 4

test_expect_success 'a daemon with two nodes' '
	start_kube_gpuqd && wait_for 60 node_is node2 idle
'

test_expect_success 'a pod that somebody deletes: the job starts again, and says so' '
	id=$(fake_job "gpus: 2\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && pod=$(the_pod "$id") &&
	kube delete "$pod" && wait_for 120 job_is "$id" attempt 1 && job_becomes "$id" RUNNING 120 &&
	test "$(job "$id" evictions | json "" | grep -c .)" = 1 && test "$(job "$id" evictions)" != "[]" &&
	test "$(the_pod "$id")" != "$pod" && gpuq cancel "$id" && job_becomes "$id" CANCELLED 120
'

test_expect_success 'a pod that is deleted by force' '
	id=$(fake_job "gpus: 2\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && pod=$(the_pod "$id") &&
	kube delete "$pod" --grace 0 && wait_for 120 job_is "$id" attempt 1 && job_becomes "$id" RUNNING 120 &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED 120
'

test_expect_success 'a job that may not be requeued ends as NODE_FAIL' '
	id=$(fake_job "gpus: 1\nrequeue: false\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 &&
	kube delete "$(the_pod "$id")" && job_becomes "$id" NODE_FAIL 120 && exits 250 gpuq wait "$id"
'

test_expect_success 'a pod deleted while the daemon is down' '
	id=$(fake_job "gpus: 2\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && pod=$(the_pod "$id") &&
	kill_gpuqd && kube delete "$pod" && kube wait "$pod" gone --timeout 60 && start_kube_gpuqd &&
	wait_for 120 job_is "$id" attempt 1 && job_becomes "$id" RUNNING 120 &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED 120
'

test_expect_success 'a job that ends while the daemon is down' '
	id=$(fake_job "gpus: 2\n$(fate run=2s exit-code=3)") && job_becomes "$id" RUNNING 120 && pod=$(the_pod "$id") &&
	kill_gpuqd && kube wait "$pod" status.phase=Failed --timeout 60 && start_kube_gpuqd &&
	job_becomes "$id" FAILED 60 && job_is "$id" exit_code 3
'

test_expect_success 'the apiserver goes: what runs is still shown, status says since when it is stale' '
	a=$(fake_job "gpus: 3\n$(fate hang=true)") && job_becomes "$a" RUNNING 120 &&
	cluster stop-apiserver && wait_for 60 cluster_is_stale && job_is "$a" state RUNNING &&
	gpuq status >out && says out "stale since"
'

test_expect_success 'submits are taken meanwhile' '
	b=$(fake_job "gpus: 1") && job_is "$b" state PENDING
'

test_expect_success 'a restarted daemon still answers' '
	kill_gpuqd && start_gpuqd --cluster kube --kubeconfig "$TMPDIR/k/gpuqd.kubeconfig" --namespace gpuq-jobs &&
	job_is "$a" state RUNNING && job_is "$b" state PENDING && c=$(fake_job "gpus: 1")
'

test_expect_success 'it comes back, and all goes on' '
	cluster start-apiserver 3>&- 4>&- 5>&- && wait_for 90 cluster_is_fresh &&
	job_becomes "$b" COMPLETED 120 && job_becomes "$c" COMPLETED 120 && job_is "$a" state RUNNING && job_is "$a" attempt 0
'

test_expect_success 'a restart of the apiserver while jobs run and start' '
	b=$(fake_job "gpus: 1\n$(fate run=3s)") && cluster restart-apiserver 3>&- 4>&- 5>&- &&
	c=$(fake_job "gpus: 1") && job_becomes "$b" COMPLETED 120 && job_becomes "$c" COMPLETED 120 &&
	job_is "$a" state RUNNING && job_is "$a" attempt 0 && job_is "$b" attempt 0
'

test_expect_success 'etcd and the apiserver forget: the watch gets 410, nothing is lost or started twice' '
	b=$(fake_job "gpus: 1\n$(fate run=3s)") && cluster forget 3>&- 4>&- 5>&- &&
	c=$(fake_job "gpus: 1") && job_becomes "$b" COMPLETED 120 && job_becomes "$c" COMPLETED 120 &&
	wait_for 60 cluster_is_fresh && job_is "$a" state RUNNING && job_is "$a" attempt 0 && job_is "$b" attempt 0 &&
	job_is "$c" attempt 0
'

test_expect_success 'the same while the daemon is paused' '
	b=$(fake_job "gpus: 1\n$(fate run=1s)") && job_becomes "$b" RUNNING 60 && kill -STOP $gpuqd_pid &&
	{ cluster forget 3>&- 4>&- 5>&- || :; } && kill -CONT $gpuqd_pid &&
	job_becomes "$b" COMPLETED 120 && job_is "$a" state RUNNING && wait_for 60 cluster_is_fresh &&
	gpuq cancel "$a" && job_becomes "$a" CANCELLED 120
'

test_expect_success 'a node falls silent: it is down, its job stays while the pod does' '
	id=$(fake_job "gpus: 2\nnodes: [node2]\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 &&
	cluster node-down node2 && wait_for 120 node_is node2 down && job_is "$id" state RUNNING &&
	other=$(fake_job "gpus: 1\nnodes: [node2]") &&
	wait_for 60 job_is "$other" reason NodesUnavailable && n_pods "$other" 0
'

test_expect_success 'and comes back' '
	cluster node-up node2 3>&- 4>&- 5>&- && job_becomes "$other" COMPLETED 120 && job_is "$id" state RUNNING &&
	job_is "$id" attempt 0
'

test_expect_success 'a node goes: what ran there starts again elsewhere' '
	gpuq cancel "$id" && job_becomes "$id" CANCELLED 120 && foreign_pod full node1 4 gpuq.test/hang=true >/dev/null &&
	wait_for 60 node_frees node1 0 && id=$(fake_job "gpus: 2\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 &&
	job_is "$id" pods.0.node node2 && kube delete default/pods/full --grace 0 && wait_for 60 node_frees node1 4 &&
	cluster delete-node node2 && wait_for 180 job_is "$id" attempt 1 && job_becomes "$id" RUNNING 120 &&
	job_is "$id" pods.0.node node1
'

test_expect_success 'and it leaves the inventory' '
	wait_for 120 eval "test -z \"\$(node_state node2)\"" && gpuq status --json | json devices.lost >lost &&
	echo 0 >none && test_cmp none lost && gpuq cancel "$id" && job_becomes "$id" CANCELLED 120
'

test_expect_success 'nothing was over-committed' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
