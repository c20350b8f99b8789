#!/bin/sh
test_description='real control plane: the sample jobs of the DWS walk-through, with nothing changed'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

samples=$test_source/examples/seeds
pods_namespace=default

# dws_node NAME POOL PRODUCT
dws_node() {
	cluster node "$1" gpus=2 cpu=8 memory=32Gi "product=$3" "label=cloud.google.com/gke-nodepool=$2" \
		taint=nvidia.com/gpu=present:NoSchedule
}

cluster_for_gpuqd --with "$test_source/examples/role-dws.yaml"

test_expect_success 'one of the two pools, and a daemon with the role that the example binds' '
	dws_node t4-1 dws-t4-nodepool Tesla-T4 && cluster node plain gpus=2 &&
	start_kube_gpuqd --site "$test_source/examples/site-dws.yaml" &&
	wait_for 60 node_is t4-1 idle
'

test_expect_success 'the first sample runs to its end on a node of its pool' '
	id=$(submit "$samples/dws-t4.yaml") && job_becomes "$id" COMPLETED 120 &&
	job_is "$id" queue dws-local-queue && job_is "$id" name sample-job && job_is "$id" pods.0.node t4-1
'

test_expect_success 'gpuq status shows the node' '
	gpuq status "$id" >out && says out "t4-1" && says out "COMPLETED"
'

test_expect_success 'submit --wait of it gives its exit code' '
	exits 0 gpuq submit --wait "$samples/dws-t4.yaml" && last_result COMPLETED 0
'

test_expect_success 'the second sample waits while its pool has no node' '
	id=$(submit "$samples/dws-a100.yaml") &&
	wait_for 60 eval "job $id reason | grep -Ex \"Unsatisfiable|NodesUnavailable\"" &&
	job_is "$id" state PENDING && n_pods "$id" 0
'

test_expect_success 'and starts when one appears' '
	dws_node a100-1 dws-a100-nodepool NVIDIA-A100-SXM4-40GB &&
	job_becomes "$id" COMPLETED 120 && job_is "$id" pods.0.node a100-1 && job_is "$id" flavor a100
'

test_expect_success 'a third sample in another namespace than its queue is refused by name' '
	sed "s/namespace: default/namespace: elsewhere/" "$samples/dws-t4.yaml" >elsewhere.yaml &&
	exits 1 gpuq submit elsewhere.yaml && says err "elsewhere" && says err "default"
'

test_expect_success 'its pod was created where the queue says, by the daemon alone' '
	kube list default/pods metadata.name >pods && ! grep -v "^gpuq-" pods &&
	kube list gpuq-jobs/pods metadata.name >pods && test ! -s pods
'

test_expect_success 'nothing was over-committed' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
