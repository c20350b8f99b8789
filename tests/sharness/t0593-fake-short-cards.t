#!/bin/sh
test_description='instances and devices that a kubelet refuses are not free, and the node says until when; also after a restart'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

broken() { # NODE RESOURCE: the plugin for it is dead there
	api PATCH "/nodes/$1" "{\"metadata\": {\"annotations\": {\"gpuq.test/broken\": \"$2\"}}}" >/dev/null
}

note_is() { # NODE PATTERN
	gpuq nodes -s -h -o NODE,NOTE >nodes.out && grep "^$1 *$2" nodes.out
}

# refused_again: one more job for the other node, which it refuses for a moment only
refused_again() {
	fake_job hang=true -g 1 -w node-0000 >/dev/null && sleep 0.3 && note_is node-0000 "its kubelet refuses nvidia.com/gpu until 2"
}

test_expect_success 'a node with instances beside one with devices, of which the plugins give nothing' '
	start_fake --nodes 2 --gpus 1 && offers node-0001 "\"nvidia.com/gpu\": null, \"nvidia.com/mig-1g.5gb\": \"7\"" "\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB\"" &&
	broken node-0001 nvidia.com/mig-1g.5gb && broken node-0000 nvidia.com/gpu && start_fake_gpuqd && wait_for 60 node_is node-0001 mig.0.free 7
'

test_expect_success 'the refusal of one makes all of them unavailable, for a time that NOTE has' '
	m=$(fake_job hang=true --mig 1g.5gb -w node-0001) && wait_for 60 says gpuqd.log "node.short node=node-0001 resource=nvidia.com/mig-1g.5gb have=0" && wait_for 60 node_is node-0001 mig.0.free 0 && node_is node-0001 free_gpus 0 &&
	node_is node-0001 devices.0.free_milli 0 && node_is node-0001 devices.0.parts.6.state refused && node_is node-0001 mig.0.foreign 0 &&
	note_is node-0001 "its kubelet refuses nvidia.com/mig-1g.5gb until 2" && gpuq status --json >status.out && test "$(json devices.stranded <status.out)" = 1 &&
	test "$(json devices.free <status.out)" = 1
'

test_expect_success 'whole devices likewise, sooner again' '
	wait_for 60 refused_again
'

test_expect_success 'the belief is there after a restart, and goes when the node offers another number' '
	kill_gpuqd && start_fake_gpuqd && node_is node-0001 mig.0.free 0 && note_is node-0001 "its kubelet refuses nvidia.com/mig-1g.5gb until 2" &&
	api PATCH /nodes/node-0001 "{\"metadata\": {\"annotations\": {\"gpuq.test/broken\": null}}}" >/dev/null && offers node-0001 "\"nvidia.com/mig-1g.5gb\": \"6\"" && wait_for 60 node_is node-0001 mig.0.count 6 &&
	n=$(fake_job hang=true --mig 1g.5gb) && job_becomes "$n" RUNNING && wait_for 60 note_is node-0001 "-$"
'

# To the fake cluster's audit, what the kubelet refuses there is an over-commitment.
test_expect_success 'nothing ran twice' '
	test "$(fake /fake/audit duplicates)" = 0 && test "$(fake /fake/audit double_successes)" = 0 && stop_gpuqd
'

test_done
