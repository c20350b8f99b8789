#!/bin/sh
test_description='a fraction of a device is counted and shown as the memory that it gets: whole units, rounded down'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# gets KEYS MIB: a job runs, and is told that memory of its device
gets() {
	got=$(echo "{command: [a], image: test, annotations: {gpuq.test/hang: \"true\"}, $1}" | gpuq submit --parsable -) && job_becomes "$got" RUNNING &&
		job_is "$got" pods.0.devices.0.memory_mib "$2"
}

test_expect_success 'a card of gpushare with 15 units' '
	start_fake --nodes 2 --gpus 0 && start_fake_gpuqd && offers node-0000 "\"aliyun.com/gpu-mem\": \"30\", \"aliyun.com/gpu-count\": \"2\"" &&
	wait_for 60 node_is node-0000 free_gpus 2
'

test_expect_success 'two halves have 7 units each, and one is free' '
	gets "gpus: 0.5" 7168 && gets "gpus: 0.5" 7168 && limits "$got" >limits.out && grep "\"aliyun.com/gpu-mem\": *\"7\"" limits.out &&
	wait_for 60 node_is node-0000 devices.0.used_memory_mib 14336 && node_is node-0000 devices.0.free_memory_mib 1024 && all_gone
'

test_expect_success 'a quarter has 3 units, and the least that a fraction has is one' '
	gets "gpus: 0.25" 3072 && gets "gpus: 0.01" 1024 && wait_for 60 node_is node-0000 devices.0.used_memory_mib 4096 && all_gone
'

test_expect_success 'on gpu-manager it has blocks of 256 MiB' '
	offers node-0000 "\"aliyun.com/gpu-mem\": null, \"aliyun.com/gpu-count\": null" && wait_for 60 node_is node-0000 gpus 0 &&
	offers node-0001 "\"tencent.com/vcuda-core\": \"100\", \"tencent.com/vcuda-memory\": \"63\"" && wait_for 60 node_is node-0001 free_gpus 1 &&
	id=$(echo "{command: [a], image: test, gpus: 0.33}" | gpuq submit --parsable -) && wait_for 60 job_is "$id" pods.0.devices.0.memory_mib 5120 &&
	node_is node-0001 devices.0.free_memory_mib 11008
'

test_done
