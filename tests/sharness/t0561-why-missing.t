#!/bin/sh
test_description='why names what keeps a job off all nodes, and the nearest change'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# missing [option...]: why of a job that waits with these options
missing() {
	id=$(fake_job hang=true "$@" 2>/dev/null) && { wait_for 10 job_is "$id" reason Unsatisfiable || :; } && gpuq why "$id" >why &&
		gpuq why --json "$id" | json waiting.missing >missing.json && gpuq cancel "$id"
}

test_expect_success 'a label that no node has, with its values and the nodes that would do' '
	start_fake --nodes 3 && start_fake_gpuqd && wait_for 60 node_is node-0002 gpus 4 &&
	api PATCH /nodes/node-0000 "{\"metadata\": {\"labels\": {\"disk\": \"hdd\"}}}" >/dev/null &&
	wait_for 60 eval "gpuq nodes --json | grep -q hdd" && missing -g 1 -C disk=ssd &&
	says why "Missing *no node with label disk=ssd would do .there are: hdd." && says why "without this label 3 nodes would do: node-0000, node-0001, node-0002"
'

test_expect_success 'a node that does not exist' '
	missing -g 1 -w node-9 && says why "no other node than node-9 is allowed" && says why "without naming nodes 3 nodes would do"
'

test_expect_success 'a flavor that no node has' '
	missing -g 1 --flavor mi300x && says why "no node of flavor mi300x would do .there are: h100." && says why "with their flavor 3 nodes would do" && says why "Free *0 GPUs of its flavors"
'

test_expect_success 'nodes that are excluded' '
	missing -g 1 -x node-0000,node-0001,node-0002 && says why "node-0000,node-0001,node-0002 is excluded"
'

test_expect_success 'a taint, and only nodes that are large enough' '
	api PATCH /nodes/node-0001 "{\"spec\": {\"taints\": [{\"key\": \"team\", \"value\": \"ml\", \"effect\": \"NoSchedule\"}]}}" >/dev/null &&
	wait_for 60 eval "missing -g 1 -w node-0001 && says why taint" &&
	says why "taint team=ml:NoSchedule is not tolerated" && says why "with a toleration of it 1 node would do: node-0001" &&
	missing -g 8 -C disk=ssd && ! grep "would do:" why
'

test_expect_success 'two things that no node has are both named, without a promise' '
	missing -g 1 -C "disk=ssd&zone=a" && says why "label disk=ssd" && says why "label zone=a" && ! grep "would do:" why
'

test_expect_success 'a pod that is too large misses nothing by name: less of it would do' '
	missing -g 1 --cpus 200 && test "$(cat missing.json)" = "[]" && ! grep Missing why && says why "Would start *with 64 CPUs a pod instead of 200" &&
	missing -g 1 --mem 2Ti && says why "with 512Gi of memory a pod instead of 2Ti" && ! grep Missing why
'

test_expect_success 'replicas and instances hold no whole device, nor a larger part than they are, and nodes without an instance none' '
	offers node-0000 "\"nvidia.com/gpu\": \"40\"" "\"nvidia.com/gpu.replicas\": \"10\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\"" &&
	offers node-0001 "\"nvidia.com/gpu\": null, \"nvidia.com/mig-1g.10gb\": \"28\"" "\"nvidia.com/mig.strategy\": \"mixed\"" &&
	api PATCH /nodes/node-0001 "{\"spec\": {\"taints\": null}}" >/dev/null &&
	wait_for 60 node_is node-0000 sharing time-slicing && wait_for 60 node_is node-0001 mig.0.count 28 &&
	missing -g 1 -C disk=ssd && says why "without this label 1 node would do: node-0002" && missing -g 0.05 -C disk=ssd && says why "without this label 1 node would do: node-0000" &&
	missing -g 0.5 -C disk=ssd && ! grep "would do:" why && missing --mig 1g.10gb -C disk=ssd && says why "without this label 1 node would do: node-0001" &&
	missing --mig 2g.20gb -C disk=ssd && ! grep "would do:" why && missing -g 1 -x node-0002 && says why "Free *0 GPUs of its flavors"
'

test_expect_success 'a job that fits misses nothing' '
	offers node-0000 "\"nvidia.com/gpu\": \"4\"" "\"nvidia.com/gpu.replicas\": null, \"nvidia.com/gpu.sharing-strategy\": null" && wait_for 60 node_is node-0000 sharing whole &&
	offers node-0001 "\"nvidia.com/gpu\": \"4\", \"nvidia.com/mig-1g.10gb\": null" "\"nvidia.com/mig.strategy\": null" && wait_for 60 node_is node-0001 sharing whole &&
	full=$(fake_job hang=true -g 4 -w node-0000) && job_becomes "$full" RUNNING && id=$(fake_job hang=true -g 4 -w node-0000) &&
	wait_for 60 job_is "$id" reason Resources && gpuq why --json "$id" | json waiting.missing >got && test "$(cat got)" = "[]" && all_gone && stop_gpuqd && stop_fake
'

test_expect_success 'on this machine, too' '
	rm -rf state && start_gpuqd && node=$(gpuq nodes --json | json name) && id=$(sh_job "true" -C disk=ssd 2>/dev/null) &&
	wait_for 60 job_is "$id" reason Unsatisfiable && gpuq why "$id" >why && says why "without this label 1 node would do: $node" && ! grep "no single change" why && gpuq cancel "$id" &&
	id=$(sh_job "true" -C default 2>err) && says err "label that the job asks for: default .it is a flavor: --flavor default.: it is pending" && gpuq cancel "$id" &&
	id=$(sh_job "true" -w nope 2>/dev/null) && wait_for 60 job_is "$id" reason Unsatisfiable && gpuq why "$id" >why && says why "without naming nodes 1 node would do: $node" &&
	! grep "no single change" why && gpuq cancel "$id" && stop_gpuqd
'

test_done
