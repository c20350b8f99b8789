#!/bin/sh
test_description='instances of the single strategy that pods of others have are taken'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

test_expect_success 'two cards in fourteen instances, of which others have five' '
	start_fake --nodes 2 --gpus 4 &&
	offers node-0000 "\"nvidia.com/gpu\": \"14\"" "\"nvidia.com/mig.strategy\": \"single\", \"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb\",
		\"nvidia.com/gpu.memory\": \"5120\", \"nvidia.com/gpu.count\": \"14\"" &&
	offers node-0001 "\"nvidia.com/gpu\": null, \"nvidia.com/mig-1g.5gb\": \"7\", \"nvidia.com/mig-3g.20gb\": \"2\"" &&
	start_fake_gpuqd && wait_for 60 node_is node-0000 mig.0.free 14 && theirs a node-0000 "\"nvidia.com/gpu\": \"3\"" &&
	theirs b node-0000 "\"nvidia.com/gpu\": \"2\"" && theirs c node-0001 "\"nvidia.com/mig-3g.20gb\": \"1\"" &&
	wait_for 60 node_is node-0000 mig.0.free 9 && node_is node-0000 mig.0.foreign 5 && node_is node-0000 foreign_gpus 0.715 &&
	wait_for 60 node_is node-0001 foreign_gpus 0.429 && wait_for 60 eval "gpuq status --json | json devices.allocated | grep -x 1.14[23]"
'

test_expect_success 'the nine that are left run, and no kubelet refuses one' '
	gpuq drain node-0001 >/dev/null && echo "{command: [a], image: test, mig: 1g.5gb, array: 0-13, annotations: {gpuq.test/hang: \"true\"}}" >j.yaml &&
	j=$(submit j.yaml) && wait_for 60 node_is node-0000 mig.0.free 0 &&
	wait_for 60 eval "test \$(gpuq queue -h -t R | grep -c .) = 9" && test "$(fake /fake/audit overcommits)" = 0 &&
	! grep UnexpectedAdmissionError gpuqd.log && gpuq why "$j" >why && says why "Reason  *Resources"
'

test_expect_success 'a pod of others that ends leaves its instances' '
	api DELETE /namespaces/default/pods/a >/dev/null && wait_for 60 eval "test \$(gpuq queue -h -t R | grep -c .) = 12" &&
	node_is node-0000 mig.0.foreign 2 && test "$(fake /fake/audit overcommits)" = 0
'

no_harm_was_done

test_done
