#!/bin/sh
test_description='inventory of the site on nodes whose plugins share devices: the smaller number of cards counts, or it is named as ignored'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# inventory ROWS
inventory() {
	echo "{version: 1, inventory: [$1], pools: [{name: h, selector: {kubernetes.io/hostname: node-0002}, sharing: hami}]}" >site.yaml && gpuq apply -f site.yaml >/dev/null
}

doctor_says() {
	{ gpuq doctor || true; } >doctor.out && says doctor.out "$1"
}

test_expect_success 'a node of gpushare, one of gpu-manager and one of HAMi, of four cards each' '
	start_fake --nodes 3 --gpus 0 && offers node-0000 "\"aliyun.com/gpu-mem\": \"60\", \"aliyun.com/gpu-count\": \"4\"" &&
	offers node-0001 "\"tencent.com/vcuda-core\": \"400\", \"tencent.com/vcuda-memory\": \"240\"" && offers node-0002 "\"nvidia.com/gpu\": \"40\"" &&
	api PATCH /nodes/node-0002 "{\"metadata\": {\"annotations\": {\"hami.io/node-nvidia-register\": \"G-0,10,15360,100,NVIDIA-T4,0,true:G-1,10,15360,100,NVIDIA-T4,0,true:G-2,10,15360,100,NVIDIA-T4,0,true:G-3,10,15360,100,NVIDIA-T4,0,true:\"}}}" >/dev/null &&
	start_fake_gpuqd && for node in 0 1 2; do wait_for 60 node_is "node-000$node" gpus 4 || return 1; done
'

test_expect_success 'a row without cards changes the number of none' '
	inventory "{selector: {kubernetes.io/hostname: node-0000}, memory: 14Gi}, {selector: {kubernetes.io/hostname: node-0001}, product: NVIDIA-A10}, {selector: {kubernetes.io/hostname: node-0002}, memory: 14Gi}" &&
	wait_for 60 node_is node-0000 devices.0.memory_mib 14336 && node_is node-0000 gpus 4 && node_is node-0001 gpus 4 && node_is node-0001 devices.3.product NVIDIA-A10 &&
	node_is node-0002 gpus 4 && node_is node-0002 devices.3.memory_mib 14336
'

test_expect_success 'fewer cards than the node has: gpushare and HAMi use the first, gpu-manager, which chooses, has all; doctor says so' '
	inventory "{selector: {kubernetes.io/hostname: node-0000}, cards: 2}, {selector: {kubernetes.io/hostname: node-0001}, cards: 2}, {selector: {kubernetes.io/hostname: node-0002}, cards: 3}" &&
	wait_for 60 node_is node-0000 gpus 2 && node_is node-0000 devices.1.memory_mib 15360 && node_is node-0001 gpus 4 && node_is node-0002 gpus 3 && node_is node-0002 devices.2.uuid G-2 &&
	doctor_says "node-0000: inventory of the site: cards 2, of the node 4: the smaller number counts" && says doctor.out "node-0002: inventory of the site: cards 3, of the node 4: the smaller number counts" &&
	says doctor.out "node-0001: inventory of the site: cards 2: ignored: gpu-manager gives all cards of the node" && test "$(gpuq status --json | json gpus)" = 9
'

test_expect_success 'no job of gpushare gets another card, and a pod of others on one takes nothing from these' '
	api POST /namespaces/default/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"theirs\", \"annotations\": {\"gpuq.test/hang\": \"true\", \"ALIYUN_COM_GPU_MEM_IDX\": \"3\", \"ALIYUN_COM_GPU_MEM_POD\": \"10\",
		\"ALIYUN_COM_GPU_MEM_ASSIGNED\": \"true\"}}, \"spec\": {\"nodeName\": \"node-0000\", \"containers\": [{\"name\": \"c\", \"image\": \"test\", \"resources\": {\"limits\": {\"aliyun.com/gpu-mem\": \"10\"}}}]}}" >/dev/null &&
	echo "{command: [a], image: test, gpu_memory: 9Gi, nodes: [node-0000], array: 0-3, annotations: {gpuq.test/hang: \"true\"}}" >j.yaml && j=$(submit j.yaml) &&
	job_becomes "${j}_1" RUNNING && wait_for 60 job_is "${j}_3" reason Fragmented && job_is "${j}_0" pods.0.devices.0.index 0 && job_is "${j}_1" pods.0.devices.0.index 1 && job_is "${j}_2" state PENDING && all_gone
'

test_expect_success 'more cards than there are, and replicas, of which they have none' '
	inventory "{selector: {kubernetes.io/hostname: node-0000}, cards: 8}, {selector: {kubernetes.io/hostname: node-0001}, replicas: 3}, {selector: {kubernetes.io/hostname: node-0002}, replicas: 2}" &&
	wait_for 60 node_is node-0000 gpus 4 && node_is node-0001 gpus 4 && node_is node-0002 gpus 4 && doctor_says "node-0000: inventory of the site: cards 8, of the node 4: the smaller number counts" &&
	says doctor.out "node-0001: inventory of the site: replicas 3: ignored: gpu-manager has none" && says doctor.out "node-0002: inventory of the site: replicas 2: ignored: hami has none"
'

test_done
