#!/bin/sh
test_description='devices that are shared: what is told of parts, of nodes that give a pod one device, and of replicas that count as devices'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# hanging KEYS: a job file of such a job
hanging() {
	echo "{command: [a], image: test, $1, annotations: {gpuq.test/hang: \"true\"}}"
}

test_expect_success 'a dry run does not say how much of a device an amount of memory is' '
	start_fake --nodes 3 --gpus 2 && offers node-0000 "\"nvidia.com/gpu\": null, \"aliyun.com/gpu-mem\": \"15\", \"aliyun.com/gpu-count\": \"1\"" "\"kind\": \"s\"" &&
	start_fake_gpuqd && wait_for 60 node_is node-0000 sharing gpushare && hanging "gpu_memory: 5Gi" >part.yaml &&
	gpuq submit --dry-run part.yaml >out && grep "pods=1 gpus=5Gi of 1$" out && hanging "gpus: 1" | gpuq submit --dry-run - >out && grep "gpus=1$" out
'

test_expect_success 'two devices where a pod has one at most: submit and why say so' '
	id=$(hanging "gpus: 2, node_selector: {kind: s}" | gpuq submit --parsable - 2>warned) && grep "2 GPUs requested, 0 on the largest node: gpushare gives a pod one device or a part of one" warned &&
	wait_for 60 job_is "$id" reason Unsatisfiable && gpuq why "$id" >why && grep "label kind=s would do.*: its nodes of gpushare give a pod one device or a part of one" why && gpuq cancel "$id" &&
	id=$(hanging "gpus: 2, node_selector: {kind: t}" | gpuq submit --parsable - 2>warned) && wait_for 60 job_is "$id" reason Unsatisfiable && gpuq why "$id" >why &&
	grep "label kind=t would do" why && ! grep "gpushare give" why && gpuq cancel "$id"
'

test_expect_success 'a device of 15 units that three parts of 5 fill is not free, nor in status' '
	for i in 1 2 3; do submit part.yaml || return 1; done >ids && for id in $(cat ids); do
		job_becomes "$id" RUNNING || return 1
	done && node_is node-0000 free_gpus 0 && node_is node-0000 devices.0.free_milli 0 && node_is node-0000 devices.0.state allocated && gpuq status --json >status.out && test "$(json devices.free <status.out)" = 4 &&
	test "$(json devices.allocated <status.out)" = 1 && all_gone
'

test_expect_success 'replicas that count as devices, in a pool of another system: the note says what they are' '
	offers node-0001 "\"nvidia.com/gpu\": \"8\"" "\"nvidia.com/gpu.sharing-strategy\": \"time-slicing\", \"nvidia.com/gpu.replicas\": \"4\", \"nvidia.com/gpu.count\": \"2\"" &&
	echo "{version: 1, pools: [{name: r, selector: {kubernetes.io/hostname: node-0001}, sharing: mps, replicas_as_gpus: true}]}" | gpuq apply -f - && wait_for 60 node_is node-0001 sharing whole &&
	wait_for 60 node_is node-0001 note "pool r has sharing: mps, the node has time-slicing, whose replicas count as whole devices"
'

no_harm_was_done

test_done
