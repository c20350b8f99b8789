#!/bin/sh
test_description='a pod that waits its turn on a node, or for the lock of it: which pod is before it, since when, until when'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# lock NODE TEXT: set it; none without a text
lock() {
	api PATCH "/nodes/$1" "{\"metadata\": {\"annotations\": {\"hami.io/mutex.lock\": ${2:+\"}${2:-null}${2:+\"}}}}" >/dev/null
}

# part KEY...: a job that runs until it is cancelled; prints its id
part() {
	printf '%s\n' 'command: [a]' 'image: test' 'annotations: {gpuq.test/hang: "true", gpuq.test/start: 3600s}' "$@" | submit -
}

# its_pod ID
its_pod() {
	api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$1" | json items.0.metadata.name
}

# waits ID OBJECT: its pod is not created, and it says why; the words are in message.out
waits() {
	wait_for 60 job_is "$1" reasons.0.object "$2" && job_is "$1" reason Starting && job_is "$1" reasons.0.who nobody &&
		[ -z "$(its_pod "$1" | grep gpuq)" ] && job "$1" reasons.0.message >message.out && gpuq why "$1" >why.out && gpuq status "$1" >status.out
}

test_expect_success 'nodes of three systems' '
	start_fake --nodes 3 --gpus 0 &&
	offers_hami node-0000 &&
	offers node-0001 "\"aliyun.com/gpu-mem\": \"60\", \"aliyun.com/gpu-count\": \"4\"" &&
	offers node-0002 "\"tencent.com/vcuda-core\": \"100\", \"tencent.com/vcuda-memory\": \"60\"" &&
	echo "{version: 1, pools: [{name: h, sharing: hami, selector: {kubernetes.io/hostname: node-0000}}]}" >site.yaml &&
	start_fake_gpuqd && gpuq apply -f site.yaml && wait_for 60 node_is node-0000 sharing hami && wait_for 60 node_is node-0002 gpus 1
'

test_expect_success 'a lock of others: its holder, its time, and when it is stale' '
	at=$(date -u "+%Y-%m-%dT%H:%M:%SZ") && lock node-0000 "$at,lab,theirs" && id=$(part "gpus: 0.5" "nodes: [node-0000]") && waits "$id" NodeLock &&
	grep -q "^node node-0000 is locked for pod lab/theirs since ${at%Z}.000Z; the lock is stale at 20..-..-..T..:..:..\.000Z$" message.out &&
	grep -q "locked for pod lab/theirs" why.out && grep -q "locked for pod lab/theirs" status.out &&
	lock node-0000 "$at,lab,another" && wait_for 60 eval "job $id reasons.0.message | grep -q lab/another"
'

test_expect_success 'the turn of a pod of another job, which is named; then of the next' '
	lock node-0000 && wait_for 60 eval "its_pod $id | grep -q gpuq" && next=$(part "gpus: 0.25" "nodes: [node-0000]") && waits "$next" DeviceTurn &&
	grep -q "^node node-0000 serves pod $(its_pod "$id") of job $id before it, since 20.*Z; the turn ends when that is served or gone$" message.out &&
	grep -q "of job $id before it" why.out && grep -q "of job $id before it" status.out && gpuq queue >queue.out && grep -q "(DeviceTurn)" queue.out &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED && wait_for 60 eval "its_pod $next | grep -q gpuq" && wait_for 60 job_is "$next" reasons.0.object null && job_is "$next" reason Starting
'

test_expect_success 'equal amounts on a node of gpushare; any on one of gpu-manager' '
	first=$(part "gpu_memory: 5Gi" "nodes: [node-0001]") && wait_for 60 eval "its_pod $first | grep -q gpuq" && same=$(part "gpu_memory: 5Gi" "nodes: [node-0001]") &&
	waits "$same" DeviceTurn && grep -q "^node node-0001 serves pod .* of job $first before it, since 20.*Z; the turn ends at 20.*Z at the latest$" message.out &&
	cores=$(part "gpus: 0.5" "nodes: [node-0002]") && wait_for 60 eval "its_pod $cores | grep -q gpuq" && small=$(part "gpus: 0.25" "nodes: [node-0002]") &&
	waits "$small" DeviceTurn && grep -q "^node node-0002 serves pod .* of job $cores before it" message.out
'

test_done
