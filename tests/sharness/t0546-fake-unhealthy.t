#!/bin/sh
test_description='cards that a ConfigMap of gpushare lists as unhealthy'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

api() { # METHOD PATH [BODY]
	/usr/bin/curl -sSf -X "$1" -H "Content-Type: ${4:-application/merge-patch+json}" ${3:+--data-binary "$3"} "http://127.0.0.1:$fake_port/api/v1$2" >/dev/null
}

# listed CARDS: what the ConfigMap of the node says, made where it is not there
listed() {
	api PATCH /namespaces/kube-system/configmaps/unhealthy-gpu-node-0000 "{\"data\": {\"gpus\": \"$1\"}}" 2>/dev/null ||
		api POST /namespaces/kube-system/configmaps "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"unhealthy-gpu-node-0000\"}, \"data\": {\"gpus\": \"$1\"}}" application/json
}

part() { # GIB: a job of such a part of a device; prints its id
	echo "{command: [a], image: test, gpu_memory: ${1}Gi, annotations: {gpuq.test/hang: 'true'}}" | submit -
}

frees() {
	[ "$(free_gpus)" = "$1" ] || { echo "$(free_gpus) are free, not $1"; return 1; }
}

test_expect_success 'AC-ALI-10: nothing is placed on listed cards; a job that runs there stays' '
	start_fake --nodes 1 --gpus 0 && api PATCH /nodes/node-0000/status "{\"status\": {
		\"capacity\": {\"aliyun.com/gpu-mem\": \"60\", \"aliyun.com/gpu-count\": \"4\"},
		\"allocatable\": {\"aliyun.com/gpu-mem\": \"60\", \"aliyun.com/gpu-count\": \"4\"}}}" &&
	start_fake_gpuqd && wait_for 60 frees 4 && early=$(part 10) && job_becomes "$early" RUNNING && job_is "$early" pods.0.devices.0.index 0 &&
	listed "0,2" && wait_for 60 frees 2 && for i in 14 13; do id=$(part $i) && job_becomes "$id" RUNNING && echo "$id" || return 1; done >ids &&
	for id in $(cat ids); do gpuq queue --json -j "$id" | json pods.0.devices.0.index || return 1; done >all && sort all >got && printf "1\n3\n" >want && test_cmp want got &&
	late=$(part 12) && wait_for 60 job_is "$late" reason Resources && job_is "$early" state RUNNING && job_is "$early" attempt 0
'

test_expect_success '... also after a restart; other ConfigMaps and words without a number say nothing' '
	kill_gpuqd && start_fake_gpuqd && wait_for 60 frees 0.201 && job_is "$early" state RUNNING && job_is "$late" state PENDING &&
	api POST /namespaces/kube-system/configmaps "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"other\"}, \"data\": {\"gpus\": \"1,3\"}}" application/json &&
	listed " 0, x" && job_becomes "$late" RUNNING && job_is "$late" pods.0.devices.0.index 2
'

# noted TEXT: what the node says
noted() {
	gpuq nodes --json >nodes.out && [ "$(json note <nodes.out)" = "$1" ] || { json note <nodes.out; return 1; }
}

test_expect_success 'the note of the node names the ConfigMap, and words that are no cards of it, which close none' '
	noted "ConfigMap kube-system/unhealthy-gpu-node-0000 lists unhealthy cards: 0; not a card of the node: x" && gpuq nodes >nodes.txt && grep "unhealthy-gpu-node-0000" nodes.txt &&
	listed "-1, 1.5 4,abc" && wait_for 60 noted "ConfigMap kube-system/unhealthy-gpu-node-0000 lists what is not a card of the node: -1, 1.5, 4, abc" &&
	gpuq nodes --json >nodes.out && ! grep unhealthy\" nodes.out && listed "2" && wait_for 60 noted "ConfigMap kube-system/unhealthy-gpu-node-0000 lists unhealthy cards: 2"
'

test_expect_success 'without the ConfigMap all cards are used' '
	gpuq cancel "$early" "$late" $(cat ids) && wait_for 60 frees 3 && api DELETE /namespaces/kube-system/configmaps/unhealthy-gpu-node-0000 && wait_for 60 frees 4
'

no_harm_was_done
test_done
