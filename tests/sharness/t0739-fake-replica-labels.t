#!/bin/sh
test_description='amounts, labels and inventory that contradict one another; which card a pod of others has is not known'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# inventory ROWS
inventory() {
	echo "{version: 1, inventory: [$1]}" >site.yaml && gpuq apply -f site.yaml >/dev/null
}

note_is() { # NODE TEXT
	gpuq nodes -o NODE,NOTE >nodes.out && grep "^$1 .*$2" nodes.out
}

doctor_says() {
	{ gpuq doctor || true; } >doctor.out && says doctor.out "$1"
}

# rows NODE: its lines of cards
rows() {
	gpuq nodes -h -o NODE,GPU,FREE | grep "^$1 " | tr -s " " | sed "s/ $//"
}

labels() { # COUNT REPLICAS
	echo "\"nvidia.com/gpu.count\": \"$1\", \"nvidia.com/gpu.replicas\": \"$2\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\", \"nvidia.com/gpu.product\": \"FOO-SHARED\""
}

test_expect_success 'nodes of replicas, whole devices, both, and more replicas than their labels have' '
	start_fake --nodes 5 --gpus 4 && offers node-0000 "\"nvidia.com/gpu\": \"40\"" "$(labels 4 10)" && offers node-0002 "\"nvidia.com/gpu\": \"2\", \"nvidia.com/gpu.shared\": \"8\"" "$(labels 4 4)" &&
	offers node-0003 "\"nvidia.com/gpu\": \"40\"" "$(labels 8 3)" && offers node-0004 "\"nvidia.com/gpu\": \"80\"" "$(labels 8 10)" && start_fake_gpuqd && wait_for 60 node_is node-0000 gpus 4 && wait_for 60 node_is node-0004 gpus 8
'

test_expect_success 'inventory of the site: the smaller of everything, and doctor names all of it' '
	inventory "{selector: {kubernetes.io/hostname: node-0000}, product: NVIDIA-T4, memory: 16Gi, cards: 6, replicas: 8}, {selector: {kubernetes.io/hostname: node-0001}, cards: 6, replicas: 8}" &&
	wait_for 60 node_is node-0000 replicas 8 && node_is node-0000 gpus 4 && node_is node-0000 devices.3.product FOO && node_is node-0000 devices.3.memory_mib 16384 && node_is node-0000 devices.3.free_milli 1000 &&
	doctor_says "node-0000: inventory of the site: replicas 8, of the node 10; cards 6, of the node 4; memory in MiB 16384, of the node 81559: the smaller number counts"
'

test_expect_success '... a node that offers as many devices as it has cards has whole ones' '
	node_is node-0001 gpus 4 && node_is node-0001 replicas null && node_is node-0001 sharing whole && says doctor.out "node-0001: inventory of the site: replicas 8, of the node 1; cards 6, of the node 4: the smaller number counts" &&
	inventory "{selector: {kubernetes.io/hostname: node-0001}, cards: 3, replicas: 8}" && wait_for 60 node_is node-0001 gpus 3 && node_is node-0001 replicas null
'

test_expect_success '... without a label of cards replicas of the site count; more to a card than are offered are no card' '
	offers node-0001 "\"nvidia.com/gpu\": \"16\"" "\"nvidia.com/gpu.count\": null" && wait_for 60 node_is node-0001 replicas 8 && node_is node-0001 gpus 2 && offers node-0001 "\"nvidia.com/gpu\": \"4\"" &&
	wait_for 60 node_is node-0001 gpus 0 && note_is node-0001 "it offers 4 replicas, and .* says that one device has more: none is used"
'

test_expect_success '... cards of the site make no whole devices of replicas that no label counts' '
	offers node-0001 "\"nvidia.com/gpu\": \"40\"" "\"nvidia.com/gpu.count\": \"4\"" && inventory "{selector: {kubernetes.io/hostname: node-0001}, cards: 4}" &&
	wait_for 60 note_is node-0001 "it offers 40 nvidia.com/gpu, and nvidia.com/gpu.count says 4 cards: none is used" && node_is node-0001 gpus 0 &&
	inventory "{selector: {kubernetes.io/hostname: node-0001}, cards: 4, replicas: 10}" && wait_for 60 node_is node-0001 gpus 4 && node_is node-0001 replicas 10
'

test_expect_success 'renamed replicas beside whole devices: the replicas are used, the others are left alone' '
	node_is node-0002 gpus 2 && node_is node-0002 replicas 4 && note_is node-0002 "nvidia.com/gpu is offered beside nvidia.com/gpu.shared: devices of one name are used" && gpuq drain node-0000 node-0001 node-0004 >/dev/null &&
	echo "{command: [a], image: test, gpus: 0.25, array: 0-8, annotations: {gpuq.test/hang: \"true\"}}" >j.yaml && j=$(submit j.yaml) && job_becomes "${j}_7" RUNNING && test "$(limits "$j")" = "{\"nvidia.com/gpu.shared\": \"1\"}" &&
	wait_for 60 job_is "${j}_8" reason Resources && job_is "${j}_0" pods.0.node node-0002 && test "$(fake /fake/audit overcommits)" = 0 && all_gone &&
	pod p "nvidia.com/gpu.shared: 1" >p.yaml && p=$(submit p.yaml) && job_becomes "$p" RUNNING && all_gone
'

test_expect_success '... whose pods of others hold what they request by name' '
	theirs s node-0002 "\"nvidia.com/gpu.shared\": \"3\"" && theirs w node-0002 "\"nvidia.com/gpu\": \"2\"" && wait_for 60 node_is node-0002 foreign_gpus 0.75 && node_is node-0002 free_gpus 1.25 &&
	api DELETE /namespaces/default/pods/s >/dev/null && api DELETE /namespaces/default/pods/w >/dev/null && gpuq resume node-0000 node-0001 node-0004 >/dev/null
'

test_expect_success 'more replicas than the labels have: none is used' '
	node_is node-0003 gpus 0 && note_is node-0003 "it offers 40 nvidia.com/gpu, and nvidia.com/gpu.count=8 with nvidia.com/gpu.replicas=3 has fewer: none is used" &&
	p=$(echo "{command: [a], image: test, gpus: 0.3, nodes: [node-0003]}" | gpuq submit --parsable - 2>/dev/null) && wait_for 60 job_is "$p" reason Unsatisfiable && gpuq cancel "$p" &&
	doctor_says "nodes .*node-0003 .it offers 40 nvidia.com/gpu" && ! grep "replicas, none of which is used.*node-0003" doctor.out && ! grep "time-slicing: usable on .*node-0003" doctor.out &&
	offers node-0003 "" "$(labels 8 5)" && wait_for 60 node_is node-0003 gpus 8 && node_is node-0003 replicas 5
'

test_expect_success 'the cards of pods of others alone are a count without indexes, as they are beside our own' '
	offers node-0001 "\"nvidia.com/gpu\": \"4\"" && inventory "{selector: {kubernetes.io/hostname: nowhere}, cards: 4}" && wait_for 60 node_is node-0001 sharing whole &&
	theirs a node-0001 "\"nvidia.com/gpu\": \"1\"" && theirs b node-0004 "\"nvidia.com/gpu\": \"3\"" && wait_for 60 node_is node-0001 foreign_gpus 1 && wait_for 60 node_is node-0004 foreign_gpus 0.3 &&
	test "$(rows node-0001)" = "node-0001 0-3 3" && test "$(rows node-0004)" = "node-0004 0-7 7.7" && node_is node-0001 devices.3.parts_assumed true && node_is node-0001 devices.0.parts_assumed false &&
	one=$(echo "{command: [a], image: test, gpus: 1, nodes: [node-0001], annotations: {gpuq.test/hang: \"true\"}}" | gpuq submit --parsable -) && job_becomes "$one" RUNNING && test "$(rows node-0001)" = "node-0001 0-3 2" && all_gone
'

test_expect_success '... but one that is known is itself, and all of them are foreign' '
	api POST /namespaces/default/pods "{\"metadata\": {\"name\": \"kai-1\", \"annotations\": {\"gpuq.test/hang\": \"true\", \"run.ai/reserve_for_gpu_index\": \"1\"}}, \"spec\": {\"nodeName\": \"node-0001\",
	 \"containers\": [{\"name\": \"c\", \"image\": \"test\", \"resources\": {\"limits\": {\"nvidia.com/gpu\": \"1\"}}}]}}" >/dev/null && wait_for 60 node_is node-0001 foreign_gpus 2 && rows node-0001 >rows.out &&
	grep -x "node-0001 0,2-3 2" rows.out && grep -x "node-0001 1 0" rows.out && theirs c node-0001 "\"nvidia.com/gpu\": \"2\"" && wait_for 60 node_is node-0001 foreign_gpus 4 && rows node-0001 >rows.out && grep -x "node-0001 0,2-3 0" rows.out
'

no_harm_was_done

test_done
