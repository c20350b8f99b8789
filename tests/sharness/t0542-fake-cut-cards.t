#!/bin/sh
test_description='cards that are cut: in quotas and what is said of them'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

test_expect_success 'eight cards, all cut into two instances of three slices' '
	start_fake --nodes 1 --gpus 8 && start_fake_gpuqd && offers node-0000 "\"nvidia.com/gpu\": null, \"nvidia.com/mig-3g.20gb\": \"16\"" &&
	wait_for 60 node_is node-0000 mig.0.count 16
'

test_expect_success 'quotas are compared with the cards, not with what their instances leave of them' '
	quota() { echo "{version: 1, queues: [{name: q, quota: $1}]}" | gpuq apply --dry-run -f - >out 2>&1; } &&
	quota 9 && grep "add up to 9 default: the cluster has 8$" out && quota 8 && ! grep "add up to" out
'

test_expect_success 'a job with an instance stands within a quota that holds the instance, and instances are what is free for it' '
	echo "{version: 1, queues: [{name: q, quota: 0.5}]}" | gpuq apply -f - &&
	echo "{command: [a], image: test, queue: q, mig: 3g.20gb, begin: now+1h}" >m.yaml && m=$(submit m.yaml) && wait_for 60 job_is "$m" reason BeginTime &&
	gpuq why "$m" >why && grep "within the quota" why && grep "6.864 GPUs of its flavors, at most 6.864 on one node" why && gpuq cancel "$m"
'

test_expect_success 'four replicas of each of eight cards are eight cards in quotas, a replica a quarter' '
	offers node-0000 "\"nvidia.com/mig-3g.20gb\": null, \"nvidia.com/gpu\": \"32\"" "\"nvidia.com/gpu.replicas\": \"4\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\"" &&
	wait_for 60 node_is node-0000 replicas 4 && quota 9 && grep "add up to 9 default: the cluster has 8$" out && quota 8 && ! grep "add up to" out &&
	echo "{version: 1, queues: [{name: q, quota: 0.25}]}" | gpuq apply -f - &&
	echo "{command: [a], image: test, queue: q, gpus: 0.1, begin: now+1h}" >p.yaml && p=$(submit p.yaml) && wait_for 60 job_is "$p" reason BeginTime &&
	gpuq why "$p" >why && grep "within the quota" why && grep "8 GPUs of its flavors, at most 8 on one node" why && gpuq cancel "$p" &&
	echo "{command: [a], image: test, queue: q, gpus: 1, begin: now+1h}" >w.yaml && w=$(submit w.yaml) && wait_for 60 job_is "$w" reasons.0.code BeginTime &&
	gpuq why "$w" >why && grep "0 GPUs of its flavors" why && gpuq cancel "$w"
'

no_harm_was_done

test_done
