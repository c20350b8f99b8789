#!/bin/sh
test_description='gpu-manager: cores and memory of a device are two amounts, for pods of gpuq and of others'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

api() { # METHOD PATH [BODY]
	/usr/bin/curl -sSf -X "$1" -H "Content-Type: application/merge-patch+json" ${3:+--data-binary "$3"} "http://127.0.0.1:$fake_port/api/v1$2"
}

# theirs NAME DEVICE CORES BLOCKS [ASSIGNED [START]]: a pod that another program made
theirs() {
	api POST /namespaces/default/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"$1\",
		\"annotations\": {\"gpuq.test/hang\": \"true\", \"gpuq.test/start\": \"${6-0s}\", \"tencent.com/predicate-gpu-idx-0\": \"$2\", \"tencent.com/predicate-time\": \"1\",
		\"tencent.com/gpu-assigned\": \"${5-true}\"}}, \"spec\": {\"nodeName\": \"node-0000\", \"containers\": [{\"name\": \"c\", \"image\": \"test\",
		\"resources\": {\"limits\": {\"tencent.com/vcuda-core\": \"$3\", \"tencent.com/vcuda-memory\": \"$4\"}}}]}}" >/dev/null
}

# note ID KEY: an annotation of its pod
note() {
	api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$1" | /usr/bin/python3 -c '
import json, sys
items = json.load(sys.stdin)["items"]
print(items[0]["metadata"]["annotations"].get(sys.argv[1], "-") if items else "no pod")' "tencent.com/$2"
}

# What the plugin does when the kubelet asks it.
serve() {
	api PATCH "/namespaces/default/pods/$(api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$1" | json items.0.metadata.name)" \
		'{"metadata": {"annotations": {"tencent.com/gpu-assigned": "true"}}}' >/dev/null
}

# part CORES BLOCKS [KEY]...: a job of such a part; prints its id
part() {
	part_cores=$1 part_blocks=$2
	shift 2
	{
		printf 'command: [a]\nimage: test\ngpu_cores: %s\ngpu_memory: %sMi\n' "$part_cores" $((part_blocks * 256))
		printf 'annotations: {gpuq.test/hang: "true", gpuq.test/start: 200ms}\n'
		[ $# = 0 ] || printf '%s\n' "$@"
	} | submit -
}

device() { # INDEX KEY
	gpuq nodes --json >nodes.out && json "devices.$1.$2" <nodes.out
}

test_expect_success 'AC-GAIA-6: what pods of others hold of the cores and of the memory is counted apart' '
	start_fake --nodes 1 --gpus 0 && api PATCH /nodes/node-0000/status "{\"status\": {
		\"capacity\": {\"tencent.com/vcuda-core\": \"300\", \"tencent.com/vcuda-memory\": \"190\"},
		\"allocatable\": {\"tencent.com/vcuda-core\": \"300\", \"tencent.com/vcuda-memory\": \"190\"}}}" >/dev/null &&
	start_fake_gpuqd && wait_for 60 eval "test \$(free_gpus) = 3" && theirs x 0 60 43 && theirs y 1 40 33 &&
	wait_for 60 eval "test \$(device 0 free_cores) = 40" && wait_for 60 eval "test \$(device 1 free_cores) = 60" &&
	test "$(device 0 free_memory_mib)" = $((20 * 256)) && test "$(device 1 free_memory_mib)" = $((30 * 256))
'

test_expect_success 'AC-GAIA-1: the fullest device that has both; what is written on the pod' '
	for want in "30 15 0" "50 15 1" "30 25 1" "70 10 2" "45 40 2"; do
		id=$(part ${want% *}) && job_becomes "$id" RUNNING && test "$(note "$id" predicate-gpu-idx-0)" = "${want##* }" &&
		test "$(note "$id" predicate-node)" = node-0000 && test "$(note "$id" gpu-assigned)" = false && serve "$id" &&
		gpuq cancel "$id" && job_becomes "$id" CANCELLED || return 1
	done
'

test_expect_success 'AC-KGS-7: the larger of its cores and its memory is charged, and counts for limits' '
	much=$(part 10 42) && job_becomes "$much" RUNNING && job_is "$much" gpus 0.666 && serve "$much" &&
	test "$(device 2 free_cores)" = 90 && test "$(device 2 free_memory_mib)" = $((21 * 256)) && test "$(device 2 free_milli)" = 334 &&
	beside=$(part 80 20) && job_becomes "$beside" RUNNING && test "$(note "$beside" predicate-gpu-idx-0)" = 2 && serve "$beside" &&
	test "$(device 2 free_cores)" = 10 && test "$(device 2 free_memory_mib)" = 256 &&
	gpuq nodes --json >nodes.out && ! grep -q "given away" nodes.out && gpuq cancel "$much" "$beside" && job_becomes "$beside" CANCELLED
'

test_expect_success 'AC-KGS-7: a limit of 0.8: 0.5 run, 0.4 more wait and say why, 0.3 more run' '
	echo "{version: 1, queues: [{name: small, limit: 0.8}, {name: default}]}" >site.yaml && gpuq apply -f site.yaml &&
	a=$(part 50 10 "queue: small") && job_becomes "$a" RUNNING && serve "$a" && b=$(part 40 5 "queue: small") && c=$(part 30 5 "queue: small") &&
	job_becomes "$c" RUNNING && serve "$c" && wait_for 60 job_is "$b" reason LimitQueue && gpuq why "$b" >why && grep 0.4 why && gpuq cancel "$a" "$b" "$c"
'

test_expect_success 'AC-GAIA-4: a pod of others that waits for the plugin is one under way, too' '
	theirs z 2 30 10 false 60s && wait_for 60 eval "test \$(device 2 free_cores) = 70" && late=$(part 30 10) &&
	wait_for 60 job_is "$late" state STARTING && test "$(note "$late" gpu-assigned)" = "no pod" &&
	api PATCH /namespaces/default/pods/z "{\"metadata\": {\"annotations\": {\"tencent.com/gpu-assigned\": \"true\"}}}" >/dev/null &&
	job_becomes "$late" RUNNING && test "$(note "$late" gpu-assigned)" = false && serve "$late"
'

test_expect_success 'a restart charges what was charged' '
	heavy=$(part 10 42) && job_becomes "$heavy" RUNNING && serve "$heavy" && stop_gpuqd && start_fake_gpuqd && job_is "$heavy" gpus 0.666 &&
	wait_for 60 eval "test \$(device 2 free_memory_mib) = $((11 * 256))" && gpuq cancel "$heavy" "$late"
'

test_done
