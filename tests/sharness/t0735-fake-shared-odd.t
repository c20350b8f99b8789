#!/bin/sh
test_description='nodes and pods of others that share devices and do not tell all of it: what is not told is not given away'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# theirs NAME NODE UNITS 'ANNOTATIONS': a pod of others with units of gpushare
theirs() {
	api POST /namespaces/default/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"$1\", \"annotations\": {\"gpuq.test/hang\": \"true\"${4:+, $4}}},
		\"spec\": {\"nodeName\": \"$2\", \"containers\": [{\"name\": \"c\", \"image\": \"test\", \"resources\": {\"limits\": {\"aliyun.com/gpu-mem\": \"$3\"}}}]}}" >/dev/null
}

theirs_go() {
	for theirs_name; do api DELETE "/namespaces/default/pods/$theirs_name?gracePeriodSeconds=0" >/dev/null || return 1; done
}

# card ID INDEX [MODE]
card() {
	printf '{\\"id\\":\\"%s\\",\\"index\\":%s,\\"count\\":10,\\"devmem\\":15360,\\"devcore\\":100,\\"type\\":\\"NVIDIA-T4\\",\\"numa\\":0,\\"mode\\":\\"%s\\",\\"health\\":true}' "$1" "$2" "${3-hami-core}"
}

# hami 'ANNOTATION' 'VALUE': of node-0001
hami() {
	api PATCH /nodes/node-0001 "{\"metadata\": {\"annotations\": {\"hami.io/$1\": \"$2\"}}}" >/dev/null
}

# many N 'KEYS': that many jobs until they are cancelled; prints the id of their array
many() {
	printf 'command: [a]\nimage: test\narray: 1-%s\nannotations: {gpuq.test/hang: "true", gpuq.test/start: 3600s}\n%s\n' "$1" "$2" | submit -
}

# placed N: so many have a place, and one waits for want of it
placed() {
	gpuq queue --json -t STARTING,RUNNING >queue.out && [ "$(wc -l <queue.out)" = "$1" ] || { echo "$(wc -l <queue.out) are placed, not $1"; return 1; }
}

test_expect_success 'a node with gpushare, and one with HAMi' '
	start_fake --nodes 2 --gpus 0 && offers node-0000 "\"aliyun.com/gpu-mem\": \"60\", \"aliyun.com/gpu-count\": \"4\"" &&
	offers node-0001 "\"nvidia.com/gpu\": \"20\"" && hami node-nvidia-register "[$(card GPU-a 0),$(card GPU-b 1)]" && start_fake_gpuqd &&
	echo "{version: 1, pools: [{name: h, sharing: hami, selector: {kubernetes.io/hostname: node-0001}}]}" >site.yaml && gpuq apply -f site.yaml && wait_for 60 node_is node-0000 gpus 4 && wait_for 60 node_is node-0001 gpus 2
'

test_expect_success 'gpushare: a pod of others with an index counts on that device, whatever else it lacks' '
	theirs index node-0000 9 "\"ALIYUN_COM_GPU_MEM_IDX\": \"3\", \"ALIYUN_COM_GPU_MEM_POD\": \"9\"" && wait_for 60 node_is node-0000 foreign_gpus 0.6 && node_is node-0000 devices.3.free_memory_mib 6144 && node_is node-0000 free_gpus 3.4 &&
	theirs bare node-0000 3 "\"ALIYUN_COM_GPU_MEM_IDX\": \"3\"" && wait_for 60 node_is node-0000 devices.3.free_memory_mib 3072 &&
	theirs less node-0000 3 "\"ALIYUN_COM_GPU_MEM_IDX\": \"3\", \"ALIYUN_COM_GPU_MEM_POD\": \"1\", \"ALIYUN_COM_GPU_MEM_DEV\": \"15\"" && wait_for 60 node_is node-0000 devices.3.free_memory_mib 0
'

test_expect_success '... and one without any takes what it requests from the node, where it is not known' '
	theirs none node-0000 15 && theirs wrong node-0000 1 "\"ALIYUN_COM_GPU_MEM_IDX\": \"-1\"" && wait_for 60 node_is node-0000 foreign_gpus 2.066 && wait_for 60 node_is node-0000 foreign_pods 5 &&
	id=$(many 2 "gpu_memory: 15Gi
nodes: [node-0000]") && wait_for 60 placed 1 && sleep 1 && placed 1 && theirs_go wrong && wait_for 60 placed 2 && gpuq cancel "$id" && theirs_go index bare less none && wait_for 60 node_is node-0000 free_gpus 4 && node_is node-0000 foreign_gpus 0
'

test_expect_success 'HAMi: no more pods than its kubelet has units for' '
	wait_for 60 placed 0 && offers node-0001 "\"nvidia.com/gpu\": \"4\"" && id=$(many 7 "gpus: 0.1
nodes: [node-0001]") && wait_for 60 placed 4 && sleep 1 && placed 4 && gpuq cancel "$id" && wait_for 60 placed 0 && offers node-0001 "\"nvidia.com/gpu\": \"20\""
'

test_expect_success 'HAMi: cards in MIG mode are left alone, in both encodings of the register; the note names them' '
	hami node-nvidia-register "[$(card GPU-a 0),$(card GPU-b 1 mig)]" && wait_for 60 node_is node-0001 devices.1.state unhealthy && node_is node-0001 devices.0.state free && node_is node-0001 state idle &&
	node_is node-0001 note "cards in MIG mode are HAMi'\''s own to cut, and not used: 1" && id=$(many 2 "gpus: 1
nodes: [node-0001]") && wait_for 60 placed 1 && sleep 1 && placed 1 && gpuq cancel "$id" && hami node-nvidia-register "GPU-a,10,15360,100,NVIDIA-T4,0,true,0,mig:GPU-b,10,15360,100,NVIDIA-T4,0,true,1,hami-core:" &&
	wait_for 60 node_is node-0001 devices.0.state unhealthy && node_is node-0001 devices.1.state free
'

test_expect_success 'HAMi: cards that hami.io/device-cordon lists get no new pods; what runs there stays' '
	hami node-nvidia-register "[$(card GPU-a 0),$(card GPU-b 1)]" && wait_for 60 node_is node-0001 free_gpus 2 && runs=$(many 1 "gpus: 1
nodes: [node-0001]") && wait_for 60 placed 1 && hami device-cordon " GPU-a, GPU-x" && wait_for 60 node_is node-0001 devices.0.state unhealthy &&
	node_is node-0001 note "hami.io/device-cordon lists cards that are not used: 0, GPU-x (there is none)" && id=$(many 2 "gpus: 1
nodes: [node-0001]") && wait_for 60 placed 2 && sleep 1 && placed 2 && gpuq cancel "$id" "$runs" && api PATCH /nodes/node-0001 "{\"metadata\": {\"annotations\": {\"hami.io/device-cordon\": null}}}" >/dev/null && wait_for 60 node_is node-0001 free_gpus 2 && node_is node-0001 note null
'

test_done
