#!/bin/sh
test_description='units of memory that one node gives, beside nodes that give other shares of their devices'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# wants MEMORY NODE [KEY: VALUE]: a job that hangs there
wants() {
	echo "{command: [a], image: test, gpu_memory: $1, nodes: [$2], annotations: {gpuq.test/hang: \"true\"}${3:+, $3}}" >w.yaml && gpuq submit --parsable w.yaml
}

# gets MEMORY NODE CHARGE: a job runs there, is charged that, and is gone again
gets() {
	got=$(wants "$1" "$2") && job_becomes "$got" RUNNING && job_is "$got" pods.0.node "$2" && job_is "$got" gpus "$3" && gpuq cancel "$got" &&
		job_becomes "$got" CANCELLED
}

test_expect_success 'replicas of three kinds, and four cards of gpushare' '
	start_fake --nodes 4 --gpus 0 && start_fake_gpuqd && offers node-0000 "\"aliyun.com/gpu-mem\": \"60\", \"aliyun.com/gpu-count\": \"4\"" &&
	offers node-0001 "\"nvidia.com/gpu\": \"80\"" "\"nvidia.com/gpu.replicas\": \"10\", \"nvidia.com/gpu.memory\": \"81920\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\"" &&
	offers node-0002 "\"nvidia.com/gpu\": \"8\"" "\"nvidia.com/gpu.replicas\": \"4\", \"nvidia.com/gpu.memory\": \"81559\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\"" &&
	offers node-0003 "\"nvidia.com/gpu.shared\": \"8\"" "\"nvidia.com/gpu.replicas\": \"4\", \"nvidia.com/gpu.memory\": \"40960\", \"nvidia.com/gpu.sharing-strategy\": \"mps\"" &&
	for want in 0000=4 0001=8 0002=2 0003=2; do wait_for 60 node_is "node-${want%=*}" free_gpus "${want#*=}" || return 1; done
'

test_expect_success 'memory that a replica has is had there, to its last MiB, whatever a card of gpushare has' '
	for want in 4Gi=node-0001=0.1 7Gi=node-0001=0.1 8Gi=node-0001=0.1 10Gi=node-0002=0.25 12Gi=node-0002=0.25 20300Mi=node-0002=0.25 5Gi=node-0003=0.25; do
		at=${want#*=} && gets "${want%%=*}" "${at%=*}" "${at#*=}" || { echo "$want"; return 1; }
	done && id=$(wants 8193Mi node-0001) && wait_for 60 job_is "$id" reason Unsatisfiable && gpuq cancel "$id"
'

test_expect_success 'three thirds of the memory of a card are one card' '
	for i in 1 2 3; do third=$(wants 5Gi node-0000) && job_becomes "$third" RUNNING && job_is "$third" gpus 0.333 || return 1; done &&
	wait_for 60 node_is node-0000 devices.0.free_memory_mib 0 && node_is node-0000 devices.1.free_memory_mib 15360 && all_gone
'

test_expect_success 'cores that gpushare does not limit are no warning to a job whose isolation rules it out' '
	asks() { echo "{command: [a], image: test, gpus: 0.1, $1}" >i.yaml && gpuq submit --dry-run i.yaml 2>err; } &&
	asks "" && says err "cores are not limited" && asks "isolation: mps" && ! says err "cores are not limited"
'

test_expect_success 'a whole device of another node is charged for its own memory' '
	offers node-0003 "\"nvidia.com/gpu.shared\": null" "\"nvidia.com/gpu.replicas\": null, \"nvidia.com/gpu.sharing-strategy\": null" &&
	offers node-0003 "\"tencent.com/vcuda-core\": \"200\", \"tencent.com/vcuda-memory\": \"320\"" && wait_for 60 node_is node-0003 free_gpus 2 &&
	id=$(wants 5Gi node-0003) && wait_for 60 eval "[ \"\$(job $id pods.0.node)\" = node-0003 ]" && job_is "$id" gpus 0.125 && gpuq cancel "$id" && job_becomes "$id" CANCELLED
'

test_expect_success 'memory is counted in the units of the node that gives it: blocks of gpu-manager are no GiB of gpushare' '
	id=$(wants 1280Mi node-0003) && wait_for 60 eval "[ \"\$(job $id pods.0.node)\" = node-0003 ]" && job_is "$id" gpus 0.032 && node_is node-0003 devices.0.free_memory_mib 39680 &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED && id=$(wants 1280Mi node-0003 "gpu_cores: 1") && wait_for 60 eval "[ \"\$(job $id pods.0.node)\" = node-0003 ]" && job_is "$id" gpus 0.031 &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED && gets 1280Mi node-0000 0.133
'

test_expect_success 'nor does it wait for cards of gpushare that are away' '
	api PATCH /nodes/node-0000/status "{\"status\": {\"conditions\": [{\"type\": \"Ready\", \"status\": \"False\"}]}}" >/dev/null &&
	wait_for 60 eval "! node_is node-0000 state ready" && gets 5Gi node-0001 0.1
'

test_done
