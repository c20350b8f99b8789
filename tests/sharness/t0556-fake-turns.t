#!/bin/sh
test_description='gpu-manager: which device is written on a pod is decided when its turn has come, by what is there by then'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

api() { # METHOD PATH [BODY]
	/usr/bin/curl -sSf -X "$1" -H "Content-Type: application/merge-patch+json" ${3:+--data-binary "$3"} "http://127.0.0.1:$fake_port/api/v1$2"
}

# note ID KEY: an annotation of its pod
note() {
	api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$1" | /usr/bin/python3 -c '
import json, sys
items = json.load(sys.stdin)["items"]
print(items[0]["metadata"]["annotations"].get("tencent.com/" + sys.argv[1], "-") if items else "no pod")' "$2"
}

# serve ID DEVICES: what the plugin writes when the kubelet asks it
serve() {
	api PATCH "/namespaces/default/pods/$(api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$1" | json items.0.metadata.name)" \
		"{\"metadata\": {\"annotations\": {\"tencent.com/gpu-assigned\": \"true\", \"tencent.com/predicate-gpu-idx-0\": \"$2\"}}}" >/dev/null
}

# asks 'KEYS': a job that starts when it is served, and runs until it is cancelled; prints its id
asks() {
	printf "command: [a]\nimage: test\n$1\nannotations: {gpuq.test/hang: 'true', gpuq.test/start: 600s}\n" | submit -
}

indexes() { # ID: of the devices of its pod, by the ledger
	gpuq status "$1" --json | /usr/bin/python3 -c 'import json, sys; print(*(d["index"] for d in json.load(sys.stdin)["pods"][0]["devices"]))'
}

whole_nodes() { # no node is left alone
	gpuq nodes --json >nodes.out && ! grep "given away" nodes.out && ! grep -E "node.frozen|devices_doubtful" gpuqd.log
}

test_expect_success 'a pod that waits gets the device that the plugin will choose by then, and demands it only where none else is there' '
	start_fake --nodes 1 --gpus 0 && api PATCH /nodes/node-0000/status "{\"status\": {
		\"capacity\": {\"tencent.com/vcuda-core\": \"200\", \"tencent.com/vcuda-memory\": \"126\"},
		\"allocatable\": {\"tencent.com/vcuda-core\": \"200\", \"tencent.com/vcuda-memory\": \"126\"}}}" >/dev/null &&
	start_fake_gpuqd && wait_for 60 eval "test \$(free_gpus) = 2" && a=$(asks "gpu_cores: 60\ngpu_memory: 1Gi") && wait_for 60 eval "test \$(note $a predicate-gpu-idx-0) = 0" &&
	test "$(note "$a" predicate-time)" != - && b=$(asks "gpu_cores: 30\ngpu_memory: 1Gi") && wait_for 60 job_is "$b" state STARTING && test "$(note "$b" gpu-assigned)" = "no pod" &&
	serve "$a" 1 && wait_for 60 eval "test \$(note $b predicate-gpu-idx-0) = 1" && test "$(note "$b" predicate-time)" = - && test "$(note "$b" gpu-assigned)" = false && serve "$b" 1 &&
	wait_for 60 eval "test \"\$(indexes $b)\" = 1" && whole_nodes && gpuq cancel "$a" "$b" && wait_for 60 eval "test \$(free_gpus) = 2"
'

test_expect_success 'a whole device that the plugin took where a part was planned: both are where they really are, the node stays in use' '
	w=$(asks "gpus: 1") && wait_for 60 eval "test \$(note $w predicate-gpu-idx-0) = -" && p=$(asks "gpu_cores: 50\ngpu_memory: 1Gi") && wait_for 60 job_is "$p" state STARTING &&
	serve "$w" 1 && wait_for 60 eval "test \$(note $p predicate-gpu-idx-0) = 0" && serve "$p" 0 &&
	wait_for 60 eval "test \"\$(indexes $w) \$(indexes $p)\" = \"1 0\"" && whole_nodes && gpuq cancel "$w" "$p" && wait_for 60 eval "test \$(free_gpus) = 2"
'

test_expect_success 'a pod for which the plugin would find no room waits until there is some' '
	x=$(asks "gpu_cores: 60\ngpu_memory: 1Gi") && wait_for 60 eval "test \$(note $x predicate-gpu-idx-0) = 0" && y=$(asks "gpus: 1") && wait_for 60 job_is "$y" state STARTING &&
	api POST /namespaces/default/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"theirs\", \"annotations\": {\"gpuq.test/hang\": \"true\",
		\"tencent.com/predicate-gpu-idx-0\": \"1\", \"tencent.com/gpu-assigned\": \"true\"}}, \"spec\": {\"nodeName\": \"node-0000\", \"containers\": [{\"name\": \"c\", \"image\": \"test\",
		\"resources\": {\"limits\": {\"tencent.com/vcuda-core\": \"30\", \"tencent.com/vcuda-memory\": \"4\"}}}]}}" >/dev/null &&
	serve "$x" 0 && wait_for 60 grep "has chosen its devices for other pods" gpuqd.log && test "$(note "$y" gpu-assigned)" = "no pod" &&
	api DELETE /namespaces/default/pods/theirs >/dev/null && wait_for 60 eval "note $y gpu-assigned | grep -qx -- -"
'

test_done
