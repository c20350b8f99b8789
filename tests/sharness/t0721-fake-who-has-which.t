#!/bin/sh
test_description='gpuq nodes: who has which device is shown where the node reports it, else who is on the node'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# shows NODE LINE...: GPU, FREE, JOBS of its devices, and no others
shows() {
	gpuq nodes -h -o GPU,FREE,JOBS "$1" | sed "s/^ *//; s/  */ /g; s/ *$//" >shown.out && shift && printf "%s\n" "$@" | diff - shown.out
}

test_expect_success 'of whole devices that the kubelet chose only their number is known' '
	start_fake --nodes 2 --gpus 4 && start_fake_gpuqd && wait_for 60 shows node-0000 "0 1 -" "1 1 -" "2 1 -" "3 1 -" &&
	a=$(fake_job hang=true -g 1) && job_becomes "$a" RUNNING && b=$(fake_job hang=true -g 2) && job_becomes "$b" RUNNING &&
	wait_for 60 shows node-0000 "0-3 1 $a,$b" && gpuq nodes -h -o BY,DEVICE_STATE node-0000 >by && grep "$a/.*(1),$b/.*(2) *shared" by &&
	test "$(node node-0000 unplaced.0.job)" = "$a" && test "$(node node-0000 unplaced.1.count)" = 2 && test "$(node node-0001 unplaced)" = "[]"
'

test_expect_success 'likewise of replicas; a node with one device has its pods there' '
	gpuq cancel "$a" "$b" >/dev/null && replicas="\"nvidia.com/gpu.sharing-strategy\": \"time-slicing\", \"nvidia.com/gpu.replicas\": \"10\"" &&
	wait_for 60 node_is node-0000 free_gpus 4 && offers node-0000 "\"nvidia.com/gpu\": \"20\"" "$replicas" && offers node-0001 "\"nvidia.com/gpu\": \"10\"" "$replicas" &&
	wait_for 60 node_is node-0000 gpus 2 && wait_for 60 node_is node-0001 gpus 1 &&
	for n in node-0000 node-0001; do
		printf "image: test\ncommand: [a]\ngpus: 0.1\nnodes: [$n]\nannotations: {gpuq.test/hang: \"true\"}\n" >part.yaml && p=$(submit part.yaml) && job_becomes "$p" RUNNING || return 1
	done && gpuq nodes -h -o GPU,FREE node-0000 | grep "^ *0-1 *1.9" && shows node-0001 "0 0.9 $p"
'

no_harm_was_done

test_done
