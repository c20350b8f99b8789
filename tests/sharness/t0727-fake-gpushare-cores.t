#!/bin/sh
test_description='gpushare serves a request in cores, by the key of job files as by vcuda, and says that it limits none'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# asks KEYS: a job that hangs; its warnings are in the file warned
asks() {
	echo "{command: [a], image: test, annotations: {gpuq.test/hang: \"true\"}, $1}" >c.yaml && gpuq submit --parsable c.yaml 2>warned
}

units() { # ID N
	limits "$1" >got && grep "\"aliyun.com/gpu-mem\": *\"$2\"" got && ! grep vcuda got
}

test_expect_success 'one card of gpushare is there, of 15 units' '
	start_fake --nodes 2 --gpus 0 && start_fake_gpuqd && offers node-0000 "\"aliyun.com/gpu-mem\": \"30\", \"aliyun.com/gpu-count\": \"2\"" &&
	wait_for 60 node_is node-0000 free_gpus 2
'

test_expect_success 'cores with memory get the memory, and the job is told that cores are not limited' '
	both=$(asks "gpu_cores: 30, gpu_memory: 4Gi") && says warned "cores are not limited, and the job gets the memory it requests" &&
	job_becomes "$both" RUNNING && units "$both" 4 && job_is "$both" gpus 0.3 && job_is "$both" pods.0.devices.0.cores null
'

test_expect_success 'cores alone get that part of the memory' '
	alone=$(asks "gpu_cores: 30") && says warned "cores are not limited, and the job gets its part of the memory" &&
	job_becomes "$alone" RUNNING && units "$alone" 4 && job_is "$alone" gpus 0.3 && all_gone
'

test_expect_success 'what gpushare cannot give is refused: all cores, parts of two cards, isolation' '
	echo "{command: [a], image: test, gpu_cores: 100, gpu_memory: 4Gi}" >all.yaml && exits 1 gpuq submit all.yaml && says err "do not limit them" &&
	echo "{command: [a], image: test, gpus: 2, gpu_cores: 30}" >two.yaml && exits 1 gpuq submit two.yaml && says err "expected gpus: 1" &&
	echo "{command: [a], image: test, gpu_cores: 30, isolation: memory-limited}" >limited.yaml && exits 1 gpuq submit limited.yaml && says err "demands isolation memory-limited"
'

test_done
