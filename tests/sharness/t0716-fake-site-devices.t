#!/bin/sh
test_description='devices that the site names by a resource are taken by those alone that name the resource or the flavor'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# takes KEYS: a job that hangs; manifest: a pod with such limits
takes() { echo "{command: [a], image: test, annotations: {gpuq.test/hang: \"true\"}, $1}" >t.yaml && gpuq submit --parsable t.yaml; }
manifest() { pod one "$1" >m.yaml && gpuq submit --parsable m.yaml; }

# runs ID NODE LIMITS
runs() {
	job_becomes "$1" RUNNING && job_is "$1" pods.0.node "$2" && test "$(limits "$1")" = "$3"
}

test_expect_success 'a node of FPGAs, one of an accelerator of a known name, one of GPUs' '
	start_fake --nodes 3 --gpus 0 && offers node-0000 "\"acme.io/fpga\": \"4\", \"rdma/hca\": \"2\"" && offers node-0001 "\"google.com/tpu\": \"4\"" &&
	offers node-0002 "\"nvidia.com/gpu\": \"2\", \"acme.io/fpga\": \"1\"" && start_fake_gpuqd && cat >site.yaml <<-\END &&
	version: 1
	flavors: [{name: foo, resource: acme.io/fpga}]
	END
	gpuq apply -f site.yaml && wait_for 60 node_is node-0000 flavor foo && node_is node-0000 gpus 4 && wait_for 60 node_is node-0002 gpus 2 && node_is node-0001 gpus 4
'

test_expect_success 'GPUs are had where GPUs are: by number, by --gres and by a manifest' '
	a=$(takes "gpus: 1") && runs "$a" node-0002 "{\"nvidia.com/gpu\": \"1\"}" && gpuq cancel "$a" && job_becomes "$a" CANCELLED &&
	b=$(fake_job hang=true --gres=gpu:1) && runs "$b" node-0002 "{\"nvidia.com/gpu\": \"1\"}" &&
	c=$(manifest "nvidia.com/gpu: 1") && runs "$c" node-0002 "{\"nvidia.com/gpu\": \"1\"}"
'

test_expect_success 'with none left they wait, though FPGAs are free' '
	d=$(takes "gpus: 1") && e=$(manifest "nvidia.com/gpu: 1") && f=$(takes "gpus: 1, pods: 2") &&
	for id in $d $e $f; do wait_for 60 job_is "$id" reason Resources || return 1; done && node_is node-0000 free_gpus 4 && all_gone
'

test_expect_success 'a job that could go there alone is told so at submit, and is unsatisfiable' '
	g=$(takes "gpus: 1, nodes: [node-0000]" 2>warned) && grep "1 GPUs requested, 0 on the largest node" warned && wait_for 60 job_is "$g" reason Unsatisfiable && all_gone
'

test_expect_success 'those that name the resource or the flavor have them' '
	a=$(takes "resources: {acme.io/fpga: 2}") && runs "$a" node-0000 "{\"acme.io/fpga\": \"2\"}" && b=$(takes "gpus: 1, flavor: foo") &&
	runs "$b" node-0000 "{\"acme.io/fpga\": \"1\"}" && c=$(manifest "acme.io/fpga: 1") && runs "$c" node-0000 "{\"acme.io/fpga\": \"1\"}" && node_is node-0000 free_gpus 0
'

test_expect_success 'status has them once: among the devices; those that stand beside GPUs are not used' '
	gpuq status >out && ! grep "^Resources.*acme.io/fpga" out && gpuq status --json | grep -q "\"acme.io/fpga\":{\"total\":4,\"free\":0,\"devices\":4,\"free_devices\":0}" && all_gone
'

test_expect_success 'a manifest of GPUs has no others, whatever flavors its queue has' '
	echo "{version: 1, queues: [{name: default, flavors: [foo]}]}" | gpuq apply -f - && a=$(takes "gpus: 1") && runs "$a" node-0000 "{\"acme.io/fpga\": \"1\"}" &&
	b=$(manifest "nvidia.com/gpu: 1" 2>warned) && grep "1 GPUs requested, 0 on the largest node of foo" warned && wait_for 60 job_is "$b" reason Unsatisfiable &&
	c=$(manifest "acme.io/fpga: 1") && runs "$c" node-0000 "{\"acme.io/fpga\": \"1\"}" && all_gone && echo "{version: 1, queues: [{name: default, flavors: []}]}" | gpuq apply -f -
'

test_expect_success 'a manifest of both is refused' '
	pod both "nvidia.com/gpu: 1, acme.io/fpga: 1" >both.yaml && test_must_fail gpuq submit both.yaml 2>why &&
	grep "expected one kind of device in a pod: acme.io/fpga is requested in addition to another" why
'

test_expect_success 'a job file of both is refused, whatever its flavor; GPUs by their name alone count as gpus' '
	for flavor in "" ", flavor: foo"; do
		echo "{command: [a], image: test, resources: {acme.io/fpga: 1, nvidia.com/gpu: 1}$flavor}" >both.yaml && test_must_fail gpuq submit both.yaml 2>why &&
			grep "expected one kind of device in a pod: acme.io/fpga is of flavor foo, and nvidia.com/gpu is requested as well" why || return 1
	done &&
	a=$(takes "resources: {nvidia.com/gpu: 1}") && runs "$a" node-0002 "{\"nvidia.com/gpu\": \"1\"}" && job_is "$a" gpus 1 && all_gone &&
	b=$(takes "resources: {nvidia.com/gpu: 1}, flavor: foo" 2>warned) && grep "1 nvidia.com/gpu requested, 0 on the largest node of foo" warned && wait_for 60 job_is "$b" reason Unsatisfiable && all_gone
'

test_expect_success 'no node with FPGAs is requested for GPUs' '
	cat >grows.yaml <<-\END &&
	version: 1
	pools:
	- {name: cloud, selector: {x: y}, flavor: foo, provisioning: {kind: autoscaler, machine: {gpus: 4, labels: {x: y}}, max_nodes: 2}}
	END
	gpuq apply -f grows.yaml && a=$(takes "gpus: 4" 2>warned) && grep "no node can hold" warned && wait_for 60 job_is "$a" reason Unsatisfiable &&
	b=$(takes "gpus: 4, flavor: foo, node_selector: {x: y}") && wait_for 60 eval "! job_is $b reason Unsatisfiable" && gpuq cancel "$a" "$b" &&
	echo "{version: 1, flavors: [{name: foo, resource: acme.io/fpga}]}" >one.yaml && gpuq apply --prune -f one.yaml
'

no_harm_was_done

test_done
