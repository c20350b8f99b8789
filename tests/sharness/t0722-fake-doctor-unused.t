#!/bin/sh
test_description='doctor: a system is usable only where a device is; nodes that are left alone are told apart from those that are not ready'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# finds TEXT: a line of doctor; lacks TEXT
finds() {
	{ gpuq doctor || :; } >doctor.out && grep -e "$1" doctor.out
}
lacks() {
	{ gpuq doctor || :; } >doctor.out && ! grep -e "$1" doctor.out
}

shared='"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "10", "nvidia.com/gpu.count": "8"'

test_expect_success 'fewer replicas than one device has are none, which the note says as it is' '
	start_fake --nodes 4 --gpus 2 && offers node-0001 "\"nvidia.com/gpu\": \"8\"" "$shared" && start_fake_gpuqd && wait_for 60 node_is node-0001 gpus 0 &&
	node node-0001 note | grep "it offers 8 replicas, and nvidia.com/gpu.replicas=10 says" && finds "time-slicing: none of the offered devices can be used: node-0001" && lacks "time-slicing: usable" &&
	finds "1 of 4 nodes is without devices that can be used: node-0001" && offers node-0001 "\"nvidia.com/gpu\": \"8\"" "\"nvidia.com/gpu.replicas\": \"1000000\"" &&
	wait_for 60 eval "node node-0001 note | grep \"nvidia.com/gpu.replicas=1000000 says\""
'

test_expect_success 'cores of gpu-manager beyond belief, or without memory' '
	offers node-0002 "\"nvidia.com/gpu\": null, \"tencent.com/vcuda-core\": \"99999999900\", \"tencent.com/vcuda-memory\": \"99999999900\"" && wait_for 60 node_is node-0002 gpus 0 &&
	finds "gpu-manager: none of the offered devices can be used: node-0002" && lacks "gpu-manager: usable" && finds "1 of 4 nodes is left alone.*: node-0002" && lacks "down: node-0002" &&
	offers node-0002 "\"tencent.com/vcuda-core\": \"200\", \"tencent.com/vcuda-memory\": null" && wait_for 60 eval "node node-0002 note | grep \"vcuda-core: it is offered without tencent.com/vcuda-memory\"" &&
	finds "gpu-manager: cores are offered without memory.*node-0002"
'

test_expect_success 'a register that cannot be read is not a plugin that does not run' '
	api PATCH /nodes/node-0003 "{\"metadata\": {\"annotations\": {\"hami.io/node-nvidia-register\": \"[\"}, \"labels\": {\"gpu\": \"on\"}}}" >/dev/null && wait_for 60 node_is node-0003 gpus 0 &&
	finds "hami: devices are offered, and the register of the cards cannot be used: node-0003" && lacks "no devices are offered" && finds "2 of 4 nodes are left alone.*: node-0002.*, node-0003"
'

test_expect_success 'what is left alone is not among the resources of the cluster' '
	gpuq status --json >status.out && grep -F "\"nvidia.com/gpu\":{\"total\":2,\"free\":2,\"devices\":2,\"free_devices\":2}" status.out
'

no_harm_was_done

test_done
