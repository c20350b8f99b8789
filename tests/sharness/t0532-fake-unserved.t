#!/bin/sh
test_description='the plugin of a node gives a pod no device: it is replaced, then the node is suspect'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

api() { # METHOD PATH [BODY]
	/usr/bin/curl -sSf -X "$1" -H "Content-Type: application/merge-patch+json" ${3:+--data-binary "$3"} "http://127.0.0.1:$fake_port/api/v1$2"
}

# pod ID ATTEMPT KEY: of its pod of that attempt
pod() {
	api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$1,gpuq.io/attempt=$2" | json "items.0.$3"
}

# fail ID ATTEMPT: its container cannot start, as with an index of -1
fail() {
	api PATCH "/namespaces/default/pods/$(pod "$1" "$2" metadata.name)/status" '{"status": {"phase": "Pending", "containerStatuses": [{"name": "main",
		"image": "test", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "CreateContainerError",
		"message": "unknown device no-gpu-has-5GiB-to-run"}}}]}}' >/dev/null
}

test_expect_success 'AC-ALI-8: a pod that is not served is deleted, and made again with a fresh time' '
	start_fake --nodes 2 --gpus 0 && for n in 0 1; do api PATCH /nodes/node-000$n/status "{\"status\": {
		\"capacity\": {\"aliyun.com/gpu-mem\": \"60\", \"aliyun.com/gpu-count\": \"4\"},
		\"allocatable\": {\"aliyun.com/gpu-mem\": \"60\", \"aliyun.com/gpu-count\": \"4\"}}}" >/dev/null || return 1; done &&
	echo "plugin_timeout: 1s" >gpuqd.yaml && start_fake_gpuqd --config gpuqd.yaml &&
	id=$(echo "{command: [a], image: test, gpu_memory: 5Gi, annotations: {gpuq.test/hang: \"true\", gpuq.test/start: 60s}}" | submit -) &&
	wait_for 60 pod "$id" 0 spec.nodeName && pod "$id" 0 spec.nodeName >node && first=$(pod "$id" 0 metadata.annotations.ALIYUN_COM_GPU_MEM_ASSUME_TIME) && fail "$id" 0 &&
	wait_for 60 eval "gpuq why $id | grep DevicePlugin" && wait_for 60 pod "$id" 1 spec.nodeName && pod "$id" 1 spec.nodeName >next && test_cmp node next &&
	test "$(pod "$id" 1 metadata.annotations.ALIYUN_COM_GPU_MEM_ASSUME_TIME)" -gt "$first" && test "$(job "$id" evictions.0.rule)" = plugin_timeout &&
	gpuq nodes --json >nodes.out && ! grep -q suspect nodes.out
'

test_expect_success 'AC-ALI-8: the second time the node is suspect, and the job goes elsewhere' '
	fail "$id" 1 && wait_for 60 pod "$id" 2 spec.nodeName && pod "$id" 2 spec.nodeName >other && ! test_cmp node other && gpuq nodes --json >nodes.out && grep suspect nodes.out &&
	gpuq nodes -o NODE,NOTE >notes && grep "^$(cat node) *pods failed there of late, avoided until [0-9]" notes && ! grep "^$(cat other) .*failed" notes &&
	w=$(echo "{command: [a], image: test, gpu_memory: 5Gi, nodes: [$(cat node)]}" | submit -) && wait_for 60 job_is "$w" reason NodesUnavailable && gpuq why "$w" >why.out && grep "down, drained or suspect" why.out && gpuq cancel "$w" &&
	job "$id" evictions.1.why | grep "no-gpu-has-5GiB-to-run" && gpuq cancel "$id"
'

test_expect_success 'gpuq resume trusts a suspect node again' '
	gpuq resume "$(cat node)" >out && grep "Resumed 1 node" out && gpuq nodes --json >nodes.out && ! grep suspect nodes.out && gpuq resume "$(cat node)" >out && grep "Resumed 0 nodes" out
'

test_expect_success 'a container that cannot start by itself is no fault of the plugin' '
	id=$(echo "{command: [a], image: test, cpus: 1, annotations: {gpuq.test/hang: \"true\", gpuq.test/start: 60s}}" | submit -) && wait_for 60 pod "$id" 0 spec.nodeName &&
	fail "$id" 0 && wait_for 60 eval "gpuq why $id | grep CreateContainerError" && gpuq cancel "$id"
'

test_done
