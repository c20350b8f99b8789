#!/bin/sh
test_description='turns and locks of nodes that share devices outlive gpuqd: a pod that waits for another waits for it after a restart'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# asks NODE KEY...: a job whose pod is pending until its plugin serves it, and runs until it is cancelled; prints its id
asks() {
	asks_node=$1
	shift
	printf '%s\n' 'command: [a]' 'image: test' 'annotations: {gpuq.test/hang: "true", gpuq.test/start: 3600s}' "nodes: [$asks_node]" "$@" | submit -
}

# its_pod ID
its_pod() {
	api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$1" | json items.0.metadata.name
}

has_pod() {
	its_pod "$1" | grep gpuq
}

# waits ID FIRST SECONDS: it has no pod for so long, and says that it waits for FIRST's
waits() {
	wait_for 60 eval "job $1 reasons.0.message | grep 'of job $2 before it'" && sleep "$3" && ! has_pod "$1" && job_is "$1" reasons.0.object DeviceTurn
}

lock_of() {
	api GET "/nodes/$1" | /usr/bin/python3 -c '
import json, sys
print(json.load(sys.stdin)["metadata"].get("annotations", {}).get("hami.io/mutex.lock", ",free").split(",", 1)[1])'
}

again() {
	start_fake_gpuqd --config gpuqd.yaml
}

test_expect_success 'nodes of three systems' '
	start_fake --nodes 3 --gpus 0 &&
	offers_hami node-0000 &&
	offers node-0001 "\"aliyun.com/gpu-mem\": \"60\", \"aliyun.com/gpu-count\": \"4\"" &&
	offers node-0002 "\"tencent.com/vcuda-core\": \"400\", \"tencent.com/vcuda-memory\": \"254\"" &&
	echo "{version: 1, pools: [{name: h, sharing: hami, selector: {kubernetes.io/hostname: node-0000}}]}" >site.yaml && echo "turn_timeout: 1s" >gpuqd.yaml &&
	again && gpuq apply -f site.yaml && wait_for 60 node_is node-0000 sharing hami && wait_for 60 node_is node-0002 gpus 4
'

test_expect_success 'AC-GAIA-4: the next pod of gpu-manager is made when the first is served, however long that takes, and gpuqd restarts meanwhile' '
	a=$(asks node-0002 "gpu_cores: 10" "gpu_memory: 256Mi") && wait_for 60 has_pod "$a" && b=$(asks node-0002 "gpu_cores: 10" "gpu_memory: 512Mi") && waits "$b" "$a" 3 &&
	job "$b" reasons.0.message | grep "the turn ends when that is served or gone$" && kill_gpuqd && again && waits "$b" "$a" 2 && stop_gpuqd && again && waits "$b" "$a" 2 &&
	api PATCH "/namespaces/default/pods/$(its_pod "$a")" "{\"metadata\": {\"annotations\": {\"tencent.com/gpu-assigned\": \"true\"}}}" >/dev/null && wait_for 60 has_pod "$b" && gpuq cancel "$a" "$b"
'

test_expect_success 'AC-ALI-5: so does one of an equal amount with gpushare; after turn_timeout it is made all the same' '
	stop_gpuqd && echo "turn_timeout: 20s" >gpuqd.yaml && again && a=$(asks node-0001 "gpu_memory: 5Gi") && wait_for 60 has_pod "$a" && b=$(asks node-0001 "gpu_memory: 5Gi") && waits "$b" "$a" 0 &&
	kill_gpuqd && again && waits "$b" "$a" 2 && kill_gpuqd && echo "turn_timeout: 1s" >gpuqd.yaml && again && wait_for 60 has_pod "$b" && gpuq cancel "$a" "$b"
'

test_expect_success 'the lock of a pod that went while gpuqd was down is given back; that of one that is there is not' '
	a=$(asks node-0000 "gpus: 0.5") && wait_for 60 has_pod "$a" && test "$(lock_of node-0000)" = "default,$(its_pod "$a")" && kill_gpuqd && again && sleep 4 &&
	test "$(lock_of node-0000)" = "default,$(its_pod "$a")" && kill_gpuqd && api DELETE "/namespaces/default/pods/$(its_pod "$a")?gracePeriodSeconds=0" >/dev/null &&
	stale=$(lock_of node-0000) && again && wait_for 20 eval "test \"\$(lock_of node-0000)\" != $stale" && gpuq cancel "$a" && job_becomes "$a" CANCELLED && wait_for 20 eval "test \"\$(lock_of node-0000)\" = free"
'

test_expect_success 'nor is one left by a job that was cancelled just before; one of others stays' '
	a=$(asks node-0000 "gpus: 0.5") && wait_for 60 has_pod "$a" && test "$(lock_of node-0000)" = "default,$(its_pod "$a")" && gone=$(its_pod "$a") && stop_gpuqd &&
	api DELETE "/namespaces/default/pods/$gone?gracePeriodSeconds=0" >/dev/null && again && gpuq cancel "$a" && wait_for 20 eval "test \"\$(lock_of node-0000)\" = free" &&
	kill_gpuqd && api PATCH /nodes/node-0000 "{\"metadata\": {\"annotations\": {\"hami.io/mutex.lock\": \"$(date -u "+%Y-%m-%dT%H:%M:%SZ"),lab,gpuq-theirs-1-0-0\"}}}" >/dev/null && again && sleep 4 && test "$(lock_of node-0000)" = lab,gpuq-theirs-1-0-0
'

test_done
