#!/bin/sh
test_description='two flavors of one resource of devices are told apart by the product'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# takes KEYS: a job that hangs
takes() { echo "{command: [a], image: test, annotations: {gpuq.test/hang: \"true\"}, $1}" >t.yaml && gpuq submit --parsable t.yaml; }

# runs ID NODE LIMITS
runs() {
	job_becomes "$1" RUNNING && job_is "$1" pods.0.node "$2" && test "$(limits "$1")" = "$3"
}

test_expect_success 'two nodes' '
	start_fake --nodes 2 --gpus 0 && start_fake_gpuqd
'

test_expect_success 'two flavors of one resource are told apart by the product of the vendor'\''s label and of the inventory' '
	offers node-0000 "\"amd.com/gpu\": \"2\"" "\"amd.com/gpu.product-name\": \"AMD_Instinct_MI300X\"" &&
	offers node-0001 "\"amd.com/gpu\": \"2\"" && cat >amd.yaml <<-\END &&
	version: 1
	flavors:
	- {name: mi300, resource: amd.com/gpu, match: {product: "AMD_Instinct_MI300*"}}
	- {name: mi250, resource: amd.com/gpu, match: {product: "AMD_Instinct_MI250*"}}
	inventory: [{selector: {kubernetes.io/hostname: node-0001}, product: AMD_Instinct_MI250X}]
	END
	gpuq apply -f amd.yaml && wait_for 60 node_is node-0000 flavor mi300 && wait_for 60 node_is node-0001 flavor mi250 &&
	node_is node-0000 devices.0.product AMD_Instinct_MI300X && node_is node-0001 devices.0.product AMD_Instinct_MI250X &&
	a=$(takes "gpus: 1, flavor: mi250") && runs "$a" node-0001 "{\"amd.com/gpu\": \"1\"}" && b=$(takes "gpus: 1, flavor: mi300") && runs "$b" node-0000 "{\"amd.com/gpu\": \"1\"}" &&
	c=$(takes "resources: {amd.com/gpu: 1}") && d=$(takes "resources: {amd.com/gpu: 1}") && job_becomes "$c" RUNNING && job_becomes "$d" RUNNING && all_gone
'

test_expect_success 'devices of the resource that none of them matches are of the flavor default, and had by their name' '
	api PATCH /nodes/node-0000 "{\"metadata\": {\"labels\": {\"amd.com/gpu.product-name\": \"AMD_Instinct_MI100\"}}}" >/dev/null && wait_for 60 node_is node-0000 flavor default &&
	a=$(takes "resources: {amd.com/gpu: 2}, nodes: [node-0000]") && runs "$a" node-0000 "{\"amd.com/gpu\": \"2\"}" && all_gone
'

test_expect_success 'without any product the first flavor of the resource has them' '
	api PATCH /nodes/node-0000 "{\"metadata\": {\"labels\": {\"amd.com/gpu.product-name\": null}}}" >/dev/null && wait_for 60 node_is node-0000 flavor mi300 &&
	node_is node-0000 devices.0.product amd.com/gpu
'

no_harm_was_done

test_done
