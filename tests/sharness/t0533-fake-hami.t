#!/bin/sh
test_description='HAMi: cards as its plugin registers them, what is written on a pod, the lock of the node'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

api() { # METHOD PATH [BODY]
	/usr/bin/curl -sSf -X "$1" -H "Content-Type: application/merge-patch+json" ${3:+--data-binary "$3"} "http://127.0.0.1:$fake_port/api/v1$2"
}

# note_node NODE KEY TEXT: set an annotation of it
note_node() {
	api PATCH "/nodes/$1" "$(/usr/bin/python3 -c 'import json, sys; print(json.dumps({"metadata": {"annotations": {"hami.io/" + sys.argv[1]: sys.argv[2] or None}}}))' "$2" "$3")" >/dev/null
}

# pod ID KEY: an annotation of its pod
pod() {
	api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$1" | /usr/bin/python3 -c '
import json, sys
items = json.load(sys.stdin)["items"]
print(items[-1]["metadata"]["annotations"].get("hami.io/" + sys.argv[1], "-") if items else "no pod")' "$2"
}

lock_of() {
	api GET "/nodes/$1" | /usr/bin/python3 -c '
import json, sys
print(json.load(sys.stdin)["metadata"].get("annotations", {}).get("hami.io/mutex.lock", ",free").split(",", 1)[1])'
}

# serve ID NODE: what the plugin does when the kubelet asks it, by the lock
serve() {
	serve_pod=$(api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$1" | json items.0.metadata.name)
	[ "$(lock_of "$2")" = "default,$serve_pod" ] || { echo "the lock of $2 is for $(lock_of "$2"), not $serve_pod"; return 1; }
	api PATCH "/namespaces/default/pods/$serve_pod" '{"metadata": {"annotations": {"hami.io/bind-phase": "success", "hami.io/vgpu-devices-to-allocate": ";"}}}' >/dev/null &&
		note_node "$2" mutex.lock "" && api PATCH "/namespaces/default/pods/$serve_pod/status" '{"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}' >/dev/null
}

# runs ID NODE [DEVICES]: its pod is told of these, has the lock and is served
runs() {
	wait_for 60 eval "pod $1 bind-phase | grep allocating" && { [ $# = 2 ] || [ "$(pod "$1" vgpu-devices-allocated)" = "$3" ] || { pod "$1" vgpu-devices-allocated; return 1; }; } &&
		serve "$1" "$2" && job_becomes "$1" RUNNING
}

# part KEY...: a job that runs until it is cancelled; prints its id
part() {
	{
		printf 'command: [a]\nimage: test\nannotations: {gpuq.test/hang: "true", gpuq.test/start: 3600s}\n'
		printf '%s\n' "$@"
	} | submit -
}

node_is() { # NODE KEY WANT
	[ "$(gpuq nodes --json | grep "\"name\":\"$1\"" | json "$2")" = "$3" ]
}

now() {
	date -u "+%Y-%m-%dT%H:%M:%SZ" "$@"
}

card() { # ID INDEX
	printf '{"id":"%s","index":%s,"count":10,"devmem":15360,"devcore":100,"type":"NVIDIA-NVIDIA T4","numa":0,"mode":"hami-core","health":true}' "$1" "$2"
}

test_expect_success 'both encodings of the register are read; other nodes are left alone, and say why' '
	start_fake --nodes 4 --gpus 20 && note_node node-0000 node-nvidia-register "[$(card GPU-a 0),$(card GPU-b 1)]" &&
	note_node node-0001 node-nvidia-register "GPU-c,10,15360,100,NVIDIA-NVIDIA T4,0,true:GPU-d,10,15360,100,NVIDIA-NVIDIA T4,0,false:" &&
	note_node node-0002 node-nvidia-register "[$(card GPU-a 0),$(card GPU-a 1)]" &&
	/usr/bin/python3 -c "print(\"GPU-x,10,15360,100,T4,0,true:\" * 20000)" >million && note_node node-0003 node-nvidia-register "$(cut -c1-120000 million)" &&
	start_fake_gpuqd &&
	wait_for 60 node_is node-0000 gpus 2 && node_is node-0000 devices.1.uuid GPU-b && node_is node-0000 devices.0.memory_mib 15360 &&
	node_is node-0001 devices.1.state unhealthy && node_is node-0001 devices.0.uuid GPU-c && node_is node-0002 state down && node_is node-0003 state down &&
	gpuq nodes --json >nodes.out && grep "expected each UUID once" nodes.out
'

# doctor_says TEXT...: of HAMi each of these lines and no others, beside the one of the nodes that are left alone
doctor_says() {
	{ gpuq doctor --json || :; } | grep "\"backend\":\"hami\"" >all
	grep "the register of the cards cannot be used: node-0002, node-0003\"" all || return 1
	grep -v "\"state\":\"broken\"" all >found
	cat found
	[ "$(grep -c . found)" = $# ] || return 1
	for doctor_text; do grep -qF "\"text\":\"hami: $doctor_text\"" found || return 1; done
}

# left_alone NODE: nothing of it counts as free, and its note says why
left_alone() {
	node_is "$1" state drained && node_is "$1" served false && gpuq nodes --json >nodes.out && grep "\"name\":\"$1\"" nodes.out | grep "HAMi may give its devices to others: sharing: hami of its pool would hand them over to gpuqd"
}

test_expect_success 'without the word of a pool its own scheduler allocates them, and gpuqd does not' '
	id=$(part "gpus: 0.5") && wait_for 60 job_is "$id" state PENDING && gpuq cancel "$id" && node_is node-0000 sharing hami && left_alone node-0000 && left_alone node-0001 && gpuq status --json >status.json && [ "$(json devices.free <status.json)" = 0 ] && [ "$(json devices.draining <status.json)" = 3 ] && id=$(part "cpus: 1") && wait_for 60 job_is "$id" reason NodesUnavailable && gpuq cancel "$id" && doctor_says "its own scheduler allocates the devices of node-0000, node-0001"
'

test_expect_success 'doctor names the nodes that gpuqd serves and those that it does not, with their numbers' '
	echo "{version: 1, pools: [{name: one, selector: {kubernetes.io/hostname: node-0001}, sharing: hami}]}" >one.yaml && gpuq apply -f one.yaml &&
	wait_for 60 doctor_says "usable on 1 of 2 nodes: node-0001" "its own scheduler allocates the devices of 1 of 2 nodes: node-0000" && node_is node-0000 served false && node_is node-0001 served true &&
	echo "{version: 1, pools: [{name: h, sharing: hami}]}" >site.yaml && gpuq apply -f site.yaml --remove=pool/one && wait_for 60 doctor_says "usable on node-0000, node-0001"
'

test_expect_success 'AC-HAMI-1, AC-HAMI-2: what is written on a pod, whose lock the node has; another waits for it' '
	two=$(part "gpus: 2" "gpu_memory: 3000Mi" "gpu_cores: 30" "nodes: [node-0000]") && next=$(part "gpus: 2" "gpu_memory: 1000Mi" "nodes: [node-0000]") &&
	wait_for 60 eval "pod $two bind-phase | grep allocating" && test "$(pod "$two" vgpu-node)" = node-0000 && test "$(pod "$next" vgpu-node)" = "no pod" &&
	test "$(pod "$two" vgpu-devices-to-allocate)" = "GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;" && pod "$two" vgpu-time | grep -E "^[0-9]{10}$" &&
	api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$two,hami.io/vgpu-node=node-0000" >pod.out && runs "$two" node-0000 "GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;" &&
	grep "\"nvidia.com/gpumem\": *\"3000\"" pod.out && grep "\"nvidia.com/gpucores\": *\"30\"" pod.out && grep "\"nvidia.com/gpu\": *\"2\"" pod.out &&
	runs "$next" node-0000 "GPU-a,NVIDIA,1000,0:GPU-b,NVIDIA,1000,0:;" && gpuq cancel "$two" "$next" && job_becomes "$next" CANCELLED
'

test_expect_success 'AC-HAMI-4: a fraction of the memory is rounded down; a whole card has all of it' '
	half=$(part "gpus: 0.33" "nodes: [node-0000]") && runs "$half" node-0000 "GPU-a,NVIDIA,5068,33:;" &&
	whole=$(part "gpus: 1" "nodes: [node-0000]") && runs "$whole" node-0000 "GPU-b,NVIDIA,15360,100:;" &&
	gpuq cancel "$half" "$whole" && job_becomes "$whole" CANCELLED && wait_for 60 node_is node-0000 free_gpus 2
'

test_expect_success 'all cores of a card and a part of its memory: the card has no other pod, and is charged whole' '
	some=$(part "gpu_cores: 60" "gpu_memory: 1Gi" "nodes: [node-0000]") && runs "$some" node-0000 "GPU-a,NVIDIA,1024,60:;" &&
	all=$(part "gpu_cores: 100" "gpu_memory: 1Gi" "nodes: [node-0000]") && runs "$all" node-0000 "GPU-b,NVIDIA,1024,100:;" && job_is "$all" gpus 1 &&
	node_is node-0000 devices.1.free_cores 0 && next=$(part "gpu_cores: 100" "gpu_memory: 1Gi" "nodes: [node-0000]") && wait_for 60 job_is "$next" reasons.0.code Resources &&
	gpuq cancel "$some" "$all" "$next" && job_becomes "$all" CANCELLED && wait_for 60 node_is node-0000 free_gpus 2
'

test_expect_success 'AC-HAMI-3: a lock of others is waited for while other nodes go on, and taken over once it is stale' '
	note_node node-0000 mutex.lock "$(now),lab,theirs" && here=$(part "gpus: 0.5" "nodes: [node-0000]") && there=$(part "gpus: 0.5" "nodes: [node-0001]") &&
	runs "$there" node-0001 && test "$(lock_of node-0000)" = lab,theirs && test "$(pod "$here" vgpu-node)" = "no pod" &&
	note_node node-0000 mutex.lock "$(now -d "301 seconds ago"),lab,theirs" && runs "$here" node-0000 && gpuq cancel "$here" "$there" && job_becomes "$here" CANCELLED
'

test_expect_success 'AC-HAMI-5: no more pods than a card is split for; pods of others count by their cards' '
	api POST /namespaces/default/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"theirs\", \"annotations\": {\"gpuq.test/hang\": \"true\",
		\"hami.io/vgpu-node\": \"node-0001\", \"hami.io/bind-phase\": \"success\", \"hami.io/vgpu-devices-allocated\": \"GPU-c,NVIDIA,7680,60:;\"}}, \"spec\":
		{\"nodeName\": \"node-0001\", \"containers\": [{\"name\": \"c\", \"image\": \"test\", \"resources\": {\"limits\": {\"nvidia.com/gpu\": \"1\"}}}]}}" >/dev/null &&
	wait_for 60 node_is node-0001 devices.0.free_cores 40 && node_is node-0001 devices.0.free_memory_mib 7680 &&
	printf "command: [a]\nimage: test\ngpu_memory: 100Mi\nnodes: [node-0000]\narray: 1-21\nannotations: {gpuq.test/hang: \"true\"}\n" >many.yaml && many=$(submit many.yaml) &&
	wait_for 60 eval "gpuq queue --json -t STARTING,RUNNING >queue.out; test \$(wc -l <queue.out) = 20" && gpuq why "$many" >why && grep Resources why && gpuq cancel "$many"
'

test_expect_success 'AC-HAMI-2: a pod that is not served goes, its lock is removed, and it is made again' '
	wait_for 60 node_is node-0000 free_gpus 2 && stop_gpuqd && echo "plugin_timeout: 1s" >gpuqd.yaml && start_fake_gpuqd --config gpuqd.yaml &&
	id=$(part "gpus: 0.5" "nodes: [node-0000]") && wait_for 60 job_is "$id" attempt 1 && test "$(job "$id" evictions.0.rule)" = plugin_timeout &&
	wait_for 60 eval "lock_of node-0000 | grep -e -1-0$" && gpuq cancel "$id" && job_becomes "$id" CANCELLED && wait_for 60 eval "test \$(lock_of node-0000) = free"
'

test_done
