#!/bin/sh
test_description='nodes of HAMi that register no cards, and nodes that offer devices of two names: no job has a device that is not its own'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# note_node 'ANNOTATIONS' 'LABELS': node-0001 has these beside its twenty replicas
note_node() {
	api PATCH "/nodes/node-0001" "{\"metadata\": {\"annotations\": {$1}, \"labels\": {$2}}}" >/dev/null
}

none='"hami.io/node-nvidia-register": null, "hami.io/node-handshake": null'

# left_alone NOTE 'ANNOTATIONS' 'LABELS'
left_alone() {
	note_node "$none" "\"gpu\": null, \"nvidia.com/gpu.count\": null" && wait_for 60 node_is node-0001 gpus 20 && note_node "$2" "$3" &&
		wait_for 60 node_is node-0001 gpus 0 && node node-0001 note | grep -F "$1" && node_is node-0001 state down
}

# asks RESOURCE [NODE]: a job that hangs with one of it; prints its id
asks() {
	printf "image: test\ncommand: [a]\nresources: {%s: 1}\nannotations: {gpuq.test/hang: \"true\"}\n" "$1" >ask.yaml && submit ask.yaml
}

# counts NAME TOTAL FREE: of node-0001
counts() {
	gpuq nodes --json node-0001 | grep -F "\"$1\":{\"total\":$2,\"free\":$3}" >/dev/null || { gpuq nodes --json node-0001; return 1; }
}

test_expect_success 'a node that is HAMi'\''s, and registers no cards, is left alone and says why' '
	start_fake --nodes 2 --gpus 2 && offers node-0001 "\"nvidia.com/gpu\": \"20\"" && start_fake_gpuqd &&
	left_alone "hami.io/node-nvidia-register: expected the cards" "\"hami.io/node-nvidia-register\": \"\"" "" &&
	left_alone "hami.io/node-nvidia-register: expected the cards" "\"hami.io/node-nvidia-register\": \"[]\"" "\"gpu\": \"on\"" &&
	left_alone "gpu=on of the node is HAMi" "" "\"gpu\": \"on\"" && left_alone "hami.io/node-handshake of the node is HAMi" "\"hami.io/node-handshake\": \"Reported 2026\"" "" &&
	big=$(fake_job hang=true -g 8) && wait_for 60 job_is "$big" reason Unsatisfiable && gpuq cancel "$big"
'

test_expect_success 'as many cards as feature discovery has seen are whole ones, whatever label gpu is for' '
	left_alone "gpu=on" "" "\"gpu\": \"on\", \"nvidia.com/gpu.count\": \"2\"" &&
	note_node "$none" "\"gpu\": \"on\", \"nvidia.com/gpu.count\": \"20\"" && wait_for 60 node_is node-0001 gpus 20 && node_is node-0001 note null
'

test_expect_success 'of devices of two names a node has those of the first; the others are not counted, and that is told' '
	offers node-0001 "\"nvidia.com/gpu\": \"1\", \"gpu.intel.com/i915\": \"1\", \"amd.com/gpu\": \"4\", \"rdma/hca\": \"1\"" "\"gpu\": null, \"nvidia.com/gpu.count\": null" &&
	wait_for 60 node_is node-0001 gpus 1 && counts rdma/hca 1 1 && counts nvidia.com/gpu 1 1 &&
	gpuq nodes --json node-0001 >nodes.out && ! grep "i915\":\|amd.com/gpu\":" nodes.out && node node-0001 inventory | grep "offered beside nvidia.com/gpu: devices of one name" &&
	node node-0001 note | grep "offered beside" && { gpuq doctor >doctor || :; } && grep "node-0001.*offered beside" doctor
'

test_expect_success 'a job of the one does not have the devices of the other, nor do pods of others' '
	i=$(asks gpu.intel.com/i915) && wait_for 60 job_is "$i" reason Unsatisfiable && job_is "$i" reasons.0.object gpu.intel.com/i915 &&
	a=$(asks amd.com/gpu) && wait_for 60 job_is "$a" reason Unsatisfiable && node_is node-0001 free_gpus 1 &&
	api POST /namespaces/default/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"theirs\", \"annotations\": {\"gpuq.test/hang\": \"true\"}}, \"spec\":
		{\"nodeName\": \"node-0001\", \"containers\": [{\"name\": \"c\", \"image\": \"test\", \"resources\": {\"limits\": {\"gpu.intel.com/i915\": \"1\"}}}]}}" >/dev/null &&
	wait_for 60 node_is node-0001 foreign_pods 1 && node_is node-0001 foreign_gpus 0 && printf "image: test\ncommand: [a]\ngpus: 1\nnodes: [node-0001]\nannotations: {gpuq.test/hang: \"true\"}\n" >n.yaml &&
	n=$(submit n.yaml) && job_becomes "$n" RUNNING && node_is node-0001 free_gpus 0 && gpuq cancel "$n" && wait_for 60 node_is node-0001 free_gpus 1
'

test_expect_success 'the flavor of its pool names those that are used' '
	printf "version: 1\nflavors: [{name: mi300, resource: amd.com/gpu}, {name: nv, match: {product: \"*\"}}]\npools: [{name: amd, selector: {kubernetes.io/hostname: node-0001}, flavor: mi300}]\n" >site.yaml &&
	gpuq apply -f site.yaml >/dev/null && wait_for 60 node_is node-0001 gpus 4 && node_is node-0001 flavor mi300 && job_becomes "$a" RUNNING &&
	node_is node-0001 free_gpus 3 && counts amd.com/gpu 4 3 && node node-0001 inventory | grep "offered beside amd.com/gpu" && job_is "$i" state PENDING &&
	sed "s/, flavor: mi300/, flavor: nv/" site.yaml >less.yaml && gpuq cancel "$a" && wait_for 60 node_is node-0001 free_gpus 4 && gpuq apply -f less.yaml &&
	wait_for 60 node_is node-0001 gpus 1 && node_is node-0001 devices.0.product NVIDIA-H100-80GB-HBM3 && counts nvidia.com/gpu 1 1
'

test_expect_success 'what is offered no more leaves those that are' '
	offers node-0001 "\"gpu.intel.com/i915\": null, \"nvidia.com/gpu\": null" && wait_for 60 node_is node-0001 gpus 4 && node_is node-0001 inventory null && counts amd.com/gpu 4 4 &&
	offers node-0001 "\"nvidia.com/gpu\": \"2\", \"amd.com/gpu\": null" && wait_for 60 node_is node-0001 gpus 2 && node_is node-0001 note null
'

no_harm_was_done

test_done
