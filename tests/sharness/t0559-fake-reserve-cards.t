#!/bin/sh
test_description='reservations of managers: what nodes hold of the quota is what they have, cut, in replicas or by another name'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

none='"nvidia.com/gpu": null'

# reserves NODES: what the manager may not
refused() {
	exits 1 as daemon gpuq reserve m -t 1h -w "$1" -q vip --start now+2h && says err "$2"
}

accepted() {
	exits 0 as daemon gpuq reserve m -t 1h -w "$1" -q vip --start now+2h && gpuq reserve --delete m
}

test_expect_success ROOT 'instances are cards, replicas are parts of cards, other resources are devices' '
	start_fake --nodes 4 --gpus 2 && offers node-0001 "$none, \"nvidia.com/mig-1g.5gb\": \"14\"" "\"nvidia.com/mig.strategy\": \"mixed\"" &&
	offers node-0002 "\"nvidia.com/gpu\": \"20\"" "\"nvidia.com/gpu.replicas\": \"10\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\"" &&
	offers node-0003 "$none, \"example.com/npu\": \"2\"" && start_fake_gpuqd && open_to_all && cat >site.yaml <<-END && gpuq apply -f site.yaml &&
	version: 1
	flavors: [{name: npu, resource: example.com/npu}, {name: gpu}]
	queues: [{name: vip, quota: 4, managers: [daemon]}, {name: default}]
	END
	for i in 0 1 2 3; do wait_for 60 node_is node-000$i gpus 2 || return 1; done &&
	for other in 1 2 3; do accepted node-0000,node-000$other || return 1; done &&
	refused node-0000,node-0001,node-0002 "would hold 6 devices at one time, its quota is 4" && refused node-0001,node-0002,node-0003 "would hold 6 devices" &&
	refused node-0000,node-0001,node-0002,node-0003 "would hold 8 devices"
'

# conflicts TEXT OPTIONS: with reservation first, in these words
conflicts() {
	conflicts_text=$1
	shift
	exits 1 gpuq reserve second -q vip --start now+2h -t 1h "$@" && says err "$conflicts_text"
}

test_expect_success ROOT 'a node in instances is reserved once, and no amount is reserved of cards that cannot be had whole' '
	gpuq reserve first -q vip --start now+2h -t 1h -w node-0001 && conflicts "0 of 2 devices of its nodes are free" -w node-0001 && conflicts "2 of 4 devices of its nodes" -w node-0000,node-0001 &&
	exits 0 gpuq reserve second -q vip --start now+3h -t 1h -w node-0001 && gpuq reserve --delete first && gpuq reserve --delete second &&
	exits 0 gpuq reserve first -q vip --start now+2h -t 1h -g 4 && conflicts "0 of 1 devices are free" -g 1 && exits 0 gpuq reserve second -q vip --start now+2h -t 1h -w node-0001 &&
	gpuq reserve --delete second && conflicts "0 of 2 devices of its nodes are free" -w node-0000 && exits 0 gpuq reserve second -q vip --start now+2h -t 1h -w node-0001,node-0002 && gpuq reserve --delete first && gpuq reserve --delete second
'

test_expect_success ROOT 'of a node that has gone nothing is held' '
	hang="annotations: {gpuq.test/hang: \"true\"}" && id=$(printf "command: [a]\nimage: test\ngpus: 1\nnodes: [node-0000]\n$hang\n" | submit -) && job_becomes "$id" RUNNING &&
	refused node-0000,node-0001,node-0002 "would hold 6 devices" && gpuq drain node-0000 --reason gone && api DELETE /nodes/node-0000 >/dev/null && wait_for 60 node_is node-0000 state down &&
	accepted node-0000,node-0001,node-0002 && refused node-0001,node-0002,node-0003 "would hold 6 devices"
'

test_done
