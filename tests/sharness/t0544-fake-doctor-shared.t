#!/bin/sh
test_description='what doctor says of nodes that share their devices in replicas'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

doctor() {
	gpuq doctor >out 2>&1 || true
}

test_expect_success 'a time-slicing node with feature discovery is usable, its product that of the card' '
	start_fake --nodes 3 --gpus 8 && start_fake_gpuqd && wait_for 60 node_is node-0002 gpus 8 &&
	offers node-0000 "\"nvidia.com/gpu\": \"80\"" "\"nvidia.com/gpu.replicas\": \"10\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\",
		\"nvidia.com/gpu.product\": \"NVIDIA-H100-SHARED\"" && wait_for 60 node_is node-0000 replicas 10 && doctor &&
	grep -q "time-slicing: usable on node-0000" out && ! grep -q "are not known" out && node_is node-0000 devices.0.product NVIDIA-H100
'

test_expect_success 'without feature discovery it is the time-slicing that lacks it, not whole devices' '
	offers node-0000 "\"nvidia.com/gpu\": \"80\"" "\"nvidia.com/gpu.product\": null, \"nvidia.com/gpu.memory\": null" &&
	wait_for 60 node_is node-0000 devices.0.product null && doctor && grep -q "time-slicing: product and memory of the devices are not known: node-0000" out &&
	! grep -q "whole devices: product" out && grep -q "whole devices: usable on node-0001, node-0002" out
'

test_expect_success 'replicas of which no label says how many: a plugin does offer them' '
	offers node-0000 "\"nvidia.com/gpu\": \"80\"" "\"nvidia.com/gpu.replicas\": null, \"nvidia.com/gpu.sharing-strategy\": null,
		\"nvidia.com/gpu.product\": \"NVIDIA-H100-SHARED\"" && wait_for 60 node_is node-0000 gpus 0 && doctor &&
	grep -q "time-slicing: devices are offered in replicas, none of which is used.*: node-0000" out && ! grep -q "no plugin offers them" out &&
	offers node-0000 "\"nvidia.com/gpu\": null, \"nvidia.com/gpu.shared\": \"80\"" "\"nvidia.com/gpu.product\": \"NVIDIA-H100\"" &&
	wait_for 60 eval "gpuq nodes --json | grep -q nvidia.com/gpu.shared" && doctor &&
	grep -q "time-slicing: devices are offered in replicas, none of which is used.*: node-0000" out && ! grep -q "no plugin offers them" out
'

no_harm_was_done

test_done
