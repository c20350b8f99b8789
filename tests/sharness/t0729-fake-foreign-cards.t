#!/bin/sh
test_description='devices of pods of KAI and KubeShare: known by index, or by UUIDs that the node does not report'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# theirs NAME NODE LIMITS METADATA: a pod of another scheduler
theirs() {
	api POST /namespaces/default/pods "{\"metadata\": {\"name\": \"$1\", $4}, \"spec\": {\"nodeName\": \"$2\",
	 \"containers\": [{\"name\": \"c\", \"image\": \"test\", \"resources\": {\"limits\": {$3}}}]}}" >/dev/null
}

hang='"gpuq.test/hang": "true"'

test_expect_success 'the card that a reservation pod of KAI reports is among those that foreign pods hold' '
	start_fake --nodes 2 --gpus 4 && start_fake_gpuqd && wait_for 60 node_is node-0000 free_gpus 4 &&
	theirs kai-1 node-0000 "\"nvidia.com/gpu\": \"1\"" "\"annotations\": {$hang, \"run.ai/reserve_for_gpu_index\": \"2\"}" &&
	wait_for 60 node_is node-0000 foreign_gpus 1 && node_is node-0000 devices.2.free_milli 0 && node_is node-0000 free_gpus 3
'

# shares NAME UUID: a pod of KubeShare, with a fifth of that card of the other node
shares() {
	theirs "$1" node-0001 "" "\"labels\": {\"sharedgpu/gpu_request\": \"0.2\", \"sharedgpu/gpu_limit\": \"1.0\"}, \"annotations\": {$hang, \"sharedgpu/gpu_uuid\": \"$2\"}"
}

# on N: so many cards of the other node have foreign parts
on() {
	node node-0001 devices >devices.json && [ "$(grep -o "\"free_milli\": *[0-9]*" devices.json | grep -vc ": *1000$")" = "$1" ]
}

test_expect_success 'parts of two UUIDs are on two cards, those of one UUID on one' '
	shares a GPU-0 && shares b GPU-0 && wait_for 60 node_is node-0001 foreign_gpus 0.4 && on 1 && shares c GPU-1 &&
	wait_for 60 node_is node-0001 foreign_gpus 0.6 && on 2 && node_is node-0001 devices.3.free_milli 600 && node_is node-0001 devices.2.free_milli 800
'

test_expect_success 'no job gets either of them, and the cards are free when the pods are gone' '
	three=$(echo "{command: [a], image: test, gpus: 3, nodes: [node-0001], annotations: {gpuq.test/hang: \"true\"}}" | gpuq submit --parsable -) &&
	wait_for 60 job_is "$three" reason Resources && api DELETE /namespaces/default/pods/c >/dev/null && job_becomes "$three" RUNNING && on 4 &&
	gpuq cancel "$three" && api DELETE /namespaces/default/pods/a >/dev/null && api DELETE /namespaces/default/pods/b >/dev/null &&
	wait_for 60 node_is node-0001 free_gpus 4 && node_is node-0001 foreign_gpus 0
'

# part NAME GROUP FRACTION: a pod of KAI with so much of the card of a group
part() {
	theirs "$1" node-0000 "" "\"labels\": {\"runai-gpu-group\": \"$2\"}, \"annotations\": {$hang, \"gpu-fraction\": \"$3\"}"
}

# reservation NAME GROUP INDEX: the one that has it for them
reservation() {
	theirs "$1" node-0000 "\"nvidia.com/gpu\": \"1\"" "\"labels\": {\"runai-gpu-group\": \"$2\"}, \"annotations\": {$hang, \"run.ai/reserve_for_gpu_index\": \"$3\"}"
}

gone() {
	for gone_pod; do api DELETE "/namespaces/default/pods/$gone_pod" >/dev/null || return 1; done
}

foreign() {
	wait_for 60 node_is node-0000 foreign_gpus "$1"
}

test_expect_success 'a card that pods of KAI share counts once: by its reservation pod, without that by their parts' '
	reservation kai-2 g7 1 && part a g7 0.5 && part b g7 0.25 && wait_for 60 node_is node-0000 foreign_pods 4 && node_is node-0000 foreign_gpus 2 && node_is node-0000 free_gpus 2 &&
	gone kai-2 && foreign 1.75 && node_is node-0000 free_gpus 2.25 && wide=$(echo "{command: [a], image: test, gpus: 3, nodes: [node-0000]}" | gpuq submit --parsable -) && wait_for 60 job_is "$wide" reason Resources && gpuq cancel "$wide" &&
	reservation kai-2 g7 0 && foreign 2 && node_is node-0000 devices.0.free_milli 0 && gone a b && wait_for 60 node_is node-0000 foreign_pods 2 && node_is node-0000 foreign_gpus 2 && gone kai-2 && foreign 1
'

test_expect_success 'likewise where the parts come first, where two pods reserve one group, and of parts of several cards' '
	part a g8 0.5 && foreign 1.5 && reservation kai-3 g8 1 && foreign 2 && reservation kai-4 g8 3 && foreign 3 && gone kai-4 && foreign 2 && gone kai-3 && foreign 1.5 && gone a && foreign 1 &&
	theirs two node-0000 "" "\"labels\": {\"runai-gpu-group/g1\": \"g1\", \"runai-gpu-group/g2\": \"g2\"}, \"annotations\": {$hang, \"gpu-fraction\": \"0.5\", \"gpu-fraction-num-devices\": \"2\"}" && foreign 2 && node_is node-0000 free_gpus 2 &&
	reservation kai-5 g1 0 && foreign 2.5 && reservation kai-6 g2 1 && foreign 3 && gone two kai-5 kai-6 && foreign 1
'

test_expect_success 'what a pod of KubeShare requests by resources it has, whatever its labels say' '
	theirs odd node-0001 "\"nvidia.com/gpu\": \"1\"" "\"labels\": {\"sharedgpu/gpu_request\": \"0.2\", \"sharedgpu/gpu_limit\": \"1.0\"}, \"annotations\": {$hang}" && wait_for 60 node_is node-0001 foreign_gpus 1 && gone odd && wait_for 60 node_is node-0001 foreign_gpus 0
'

test_done
