#!/bin/sh
test_description='nodes that are cut or labelled anew under jobs that run: those hold what they have, and nothing is given twice'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

mixed="\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB\", \"nvidia.com/gpu.memory\": \"40960\""

# some N KEYS: an array of so many jobs that hang; prints its id
some() {
	echo "{command: [a], image: test, array: 0-$(($1 - 1)), annotations: {gpuq.test/hang: \"true\"}, $2}" | submit -
}

# running N: so many jobs run, and no more are given room: a cycle has been since
running() {
	wait_for 60 eval "test \$(gpuq queue -h -t R | grep -c .) = $1" && sleep 1 && test "$(gpuq queue -h -t R,CF | grep -c .)" = "$1" && no_more
}

# no_more: no kubelet refused a pod, none has more than it offers but for what ran before
no_more() {
	! grep UnexpectedAdmissionError gpuqd.log
}

test_expect_success 'replicas of a quarter become halves: a job holds one of either' '
	start_fake --nodes 1 --gpus 4 && offers node-0000 "\"nvidia.com/gpu\": \"12\"" "\"nvidia.com/gpu.replicas\": \"4\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\", \"nvidia.com/gpu.count\": \"3\"" &&
	start_fake_gpuqd && wait_for 60 node_is node-0000 gpus 3 && j=$(some 5 "gpus: 0.25") && running 5 &&
	offers node-0000 "\"nvidia.com/gpu\": \"6\"" "\"nvidia.com/gpu.replicas\": \"2\"" && wait_for 60 node_is node-0000 replicas 2 && k=$(some 4 "gpus: 0.5") && running 6 && job_is "${k}_0" state RUNNING
'

test_expect_success '... and whole devices, of which the kubelet has none left' '
	offers node-0000 "\"nvidia.com/gpu\": \"3\"" "\"nvidia.com/gpu.replicas\": \"1\", \"nvidia.com/gpu.sharing-strategy\": null" && wait_for 60 node_is node-0000 replicas null && gpuq cancel "$k" && wait_for 60 running 5 && w=$(some 2 "gpus: 1") && running 5 &&
	gpuq cancel "$j" && running 2 && all_gone
'

test_expect_success 'whole devices that are cut: none of the instances is free' '
	w=$(some 3 "gpus: 1") && running 3 && offers node-0000 "\"nvidia.com/gpu\": null, \"nvidia.com/mig-1g.5gb\": \"21\"" "$mixed" && wait_for 60 node_is node-0000 mig.0.count 21 && m=$(some 8 "mig: 1g.5gb") && running 3 &&
	node_is node-0000 free_gpus 0 && gpuq cancel "${w}_0" && wait_for 60 running 9 && gpuq cancel "$w" && wait_for 60 running 8
'

test_expect_success 'another profile: instances of the former hold its cards' '
	offers node-0000 "\"nvidia.com/mig-1g.5gb\": null, \"nvidia.com/mig-2g.10gb\": \"9\"" && wait_for 60 node_is node-0000 mig.0.profile 2g.10gb && o=$(some 9 "mig: 2g.10gb") && wait_for 60 job_is "${o}_3" state RUNNING && running 13
'

test_expect_success 'instances that become whole devices again, and fewer devices than there were' '
	gpuq cancel "$m" && wait_for 60 running 9 && offers node-0000 "\"nvidia.com/mig-2g.10gb\": null, \"nvidia.com/gpu\": \"3\"" && wait_for 60 node_is node-0000 gpus 3 && node_is node-0000 free_gpus 0.428 && w=$(some 3 "gpus: 1") && running 9 && gpuq cancel "$o" && wait_for 60 running 3 &&
	gpuq cancel "${w}_0" && wait_for 60 running 2 && offers node-0000 "\"nvidia.com/gpu\": \"2\"" && wait_for 60 node_is node-0000 free_gpus 0 && v=$(some 1 "gpus: 1") && running 2 && all_gone && wait_for 60 node_is node-0000 gpus 2
'

test_done
