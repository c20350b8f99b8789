#!/bin/sh
test_description='gpu-manager: which device is written on a pod is decided when its turn has come, by what is there by then'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

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

# foreign NAME NODE DEVICE: a pod of others, which the plugin has given half of a device
foreign() {
	api POST /namespaces/default/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"$1\", \"annotations\": {\"gpuq.test/hang\": \"true\",
		\"tencent.com/predicate-gpu-idx-0\": \"$3\", \"tencent.com/gpu-assigned\": \"true\"}}, \"spec\": {\"nodeName\": \"$2\", \"containers\": [{\"name\": \"c\", \"image\": \"test\",
		\"resources\": {\"limits\": {\"tencent.com/vcuda-core\": \"50\", \"tencent.com/vcuda-memory\": \"4\"}}}]}}" >/dev/null
}

vcuda='"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "126"' # two devices

# is_back JOB: it is pending again, and says what has happened; it is not one that waits for a time
is_back() {
	gpuq status "$1" --json >back.json && [ "$(json state <back.json)" = PENDING ] && cat back.json && [ "$(json reason <back.json)" != BeginTime ] &&
		[ "$(json message <back.json)" = "the device plugin of its node has chosen its devices for other pods" ]
}

whole_nodes() { # no node is left alone
	gpuq nodes --json >nodes.out && ! grep "given away" nodes.out && ! grep -E "node.frozen|devices_doubtful" gpuqd.log
}

test_expect_success 'a pod that waits gets the device that the plugin will choose by then, and demands it only where none else is there' '
	start_fake --nodes 2 --gpus 0 && offers node-0000 "$vcuda" &&
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

test_expect_success 'a job for which the plugin has left no room gives its place up: it is pending, is no failed attempt, and starts when there is room' '
	x=$(asks "gpu_cores: 60\ngpu_memory: 1Gi") && wait_for 60 eval "test \$(note $x predicate-gpu-idx-0) = 0" && y=$(asks "gpus: 1") && wait_for 60 job_is "$y" state STARTING &&
	foreign theirs node-0000 1 && serve "$x" 0 && wait_for 60 grep "has chosen its devices for other pods" gpuqd.log && wait_for 60 is_back "$y" &&
	grep -q "job.withdrawn job=$y index=-1 node=node-0000 " gpuqd.log && test "$(note "$y" gpu-assigned)" = "no pod" && job_is "$y" avoids "[]" && wait_for 60 eval "job $y reason | grep -qxE \"Resources|Fragmented\"" && whole_nodes &&
	api DELETE /namespaces/default/pods/theirs >/dev/null && wait_for 60 eval "note $y gpu-assigned | grep -qx -- -" && serve "$y" 1 && wait_for 60 eval "test \"\$(indexes $y)\" = 1" &&
	gpuq cancel "$x" "$y" && wait_for 60 eval "test \$(free_gpus) = 2"
'

test_expect_success 'where another node has room it starts there' '
	x=$(asks "gpu_cores: 60\ngpu_memory: 1Gi") && wait_for 60 eval "test \$(note $x predicate-gpu-idx-0) = 0" && y=$(asks "gpus: 1") && wait_for 60 job_is "$y" state STARTING && foreign theirs node-0000 1 &&
	offers node-0001 "$vcuda" && wait_for 60 node_is node-0001 gpus 2 && serve "$x" 0 && wait_for 60 eval "test \"\$(gpuq status $y --json | json pods.0.node)\" = node-0001" && wait_for 60 eval "note $y gpu-assigned | grep -qx -- -" &&
	grep "job.withdrawn job=$y index=-1 node=node-0000 " gpuqd.log && serve "$y" 0 && wait_for 60 eval "test \"\$(indexes $y)\" = 0" && whole_nodes && api DELETE /namespaces/default/pods/theirs >/dev/null && gpuq cancel "$x" "$y"
'

test_expect_success 'AC-GAIA-2: a job that only this node can have is made again there at once after a refusal, whatever other nodes have room' '
	wait_for 60 eval "test \$(free_gpus) = 4" && printf "command: [a]\nimage: test\ngpu_cores: 50\ngpu_memory: 1Gi\nnodes: [node-0000]\nannotations: {gpuq.test/reject: UnexpectedAdmissionError}\n" >refused.yaml && id=$(submit refused.yaml) &&
	wait_for 30 eval "test \$(job $id attempt) -ge 1" && gpuq cancel "$id"
'

test_done
