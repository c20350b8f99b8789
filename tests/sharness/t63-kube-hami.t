#!/bin/sh
test_description='real control plane: HAMi, by its plugin: what is written on a pod, the lock of the node, what goes wrong'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/plugins.sh"

cluster_for_gpuqd

# hami NODE [option of the plugin]...: a node of two cards of 15 GiB, each split for ten pods
hami() {
	cluster node "$1" gpus=0 nvidia.com/gpu=20 "label=kind=$1" label=gpu=on && plugin hami "$@" devices=2 size=15360 &&
		wait_for 60 node_has "$1" sharing hami
}

# on NODE 'KEYS' [NOTES]: a part of a card there
on() {
	part "$2\nnode_selector: {kind: $1}" ${3+"$3"}
}

lock_of() {
	node_note "$1" hami.io/mutex.lock | cut -d, -f2-
}

now() {
	date -u "+%Y-%m-%dT%H:%M:%SZ" "$@"
}

# allocated JOB: what is written for the plugin
allocated() {
	noted "$1" hami.io/vgpu-devices-allocated
}

no_harm() {
	! grep -E "confused|over" ./*.log
}

test_expect_success 'a node of HAMi without a pool that names it is left alone' '
	start_kube_gpuqd && hami h && wait_for 60 node_frees h 2 && node_has h devices.0.uuid GPU-h-0 && node_has h devices.1.memory_mib 15360 &&
	node_has h devices.0.product Tesla-T4 && node_has h served false && { gpuq doctor >doctor.out || true; } && grep -q "hami: its own scheduler allocates the devices of h" doctor.out && id=$(on h "gpus: 0.5") && wait_for 60 job_is "$id" state PENDING && n_pods "$id" 0 && gpuq cancel "$id"
'

test_expect_success 'without the right to lock a node no pod is made, and doctor names the file; with it the pod runs' '
	echo "{version: 1, pools: [{name: h, sharing: hami}]}" >site.yaml && gpuq apply -f site.yaml && id=$(on h "gpus: 0.5") &&
	wait_for 60 grep "may not lock it, see etc/kubernetes/optional/hami.yaml" gpuqd.log && n_pods "$id" 0 && { gpuq doctor >doctor.out || true; } && grep "hami.*may not patch nodes" doctor.out &&
	kube apply -f "$test_source/etc/kubernetes/optional/hami.yaml" >/dev/null && job_becomes "$id" RUNNING 120 && node_has h served true &&
	{ gpuq doctor >doctor.out || true; } && grep -q "hami: usable on h" doctor.out && gpuq cancel "$id" && job_becomes "$id" CANCELLED 60
'

test_expect_success 'AC-HAMI-1: the matrix row HAMi: devices as text for each container, init containers first' '
	cat >three.yaml <<-END && id=$(submit three.yaml) && job_becomes "$id" RUNNING 120 &&
	apiVersion: v1
	kind: Pod
	metadata: {name: three, annotations: {gpuq.test/start: 3600s, gpuq.test/hang: "true"}}
	spec:
	  nodeSelector: {kind: h}
	  initContainers: [{name: prepare, image: $kube_image}]
	  containers:
	  - {name: beside, image: $kube_image}
	  - {name: main, image: $kube_image, resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpumem: 3000, nvidia.com/gpucores: 30}}}
	END
	test "$(allocated "$id")" = ";;GPU-h-0,NVIDIA,3000,30:GPU-h-1,NVIDIA,3000,30:;" && test "$(noted "$id" hami.io/vgpu-node)" = h &&
	noted "$id" hami.io/vgpu-time | grep -Ex "[0-9]{10}" && noted "$id" hami.io/bind-time | grep -Ex "[0-9]{10}" && test "$(noted "$id" hami.io/bind-phase)" = success &&
	kube get "$(the_pod "$id")" metadata.labels.[hami.io/vgpu-node] && grep "served .* GPU-h-0,GPU-h-1 3000 30" h.log && job_is "$id" pods.0.devices.1.index 1 &&
	gpuq cancel "$id" && wait_for 60 node_frees h 2
'

test_expect_success 'AC-HAMI-4: a fraction of the memory is rounded down; a whole card has all of it' '
	printf "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {gpuq.test/start: 3600s, gpuq.test/hang: \"true\"}}\nspec:\n  nodeSelector: {kind: h}\n  containers:\n" >head &&
	{ cat head && echo "  - {name: c, image: $kube_image, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 50}}}"; } >half.yaml &&
	half=$(submit half.yaml) && job_becomes "$half" RUNNING 120 && test "$(allocated "$half" | cut -d, -f2,3)" = NVIDIA,7680 &&
	third=$(on h "gpus: 0.33") && job_becomes "$third" RUNNING 120 && test "$(allocated "$third" | cut -d, -f3,4)" = "5068,33:;" &&
	whole=$(on h "gpus: 1") && job_becomes "$whole" RUNNING 120 && test "$(allocated "$whole")" = "GPU-h-1,NVIDIA,15360,100:;" &&
	gpuq cancel "$half" "$third" "$whole" && wait_for 60 node_frees h 2 &&
	{ cat head && echo "  - {name: c, image: $kube_image, resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpumem-percentage: 50}}}"; } >both.yaml &&
	both=$(submit both.yaml) && job_becomes "$both" RUNNING 120 && test "$(allocated "$both")" = "GPU-h-0,NVIDIA,7680,50:GPU-h-1,NVIDIA,7680,50:;" &&
	job_is "$both" gpus 1 && gpuq cancel "$both" && wait_for 60 node_frees h 2
'

test_expect_success 'AC-HAMI-2: of pods for one node each has the lock by itself; those of another node go beside them' '
	hami slow delay=2 && hami beside && echo "{version: 1, pools: [{name: h, sharing: hami}]}" >site.yaml && gpuq apply -f site.yaml &&
	for i in 1 2 3; do on slow "gpus: 0.1" || return 1; done >ids && b=$(on beside "gpus: 0.1") && job_becomes "$b" RUNNING 120 &&
	for id in $(cat ids); do job_becomes "$id" RUNNING 120 && job_is "$id" attempt 0 || return 1; done && ! grep "waiting 2" slow.log && no_harm &&
	wait_for 60 eval "test \"\$(lock_of slow)\" = -" && gpuq cancel "$b" $(cat ids) && wait_for 60 node_frees slow 2
'

test_expect_success 'AC-HAMI-3: a lock of others is waited for while other nodes go on, and taken over once it is stale' '
	note_node h hami.io/mutex.lock "$(now),lab,theirs" && here=$(on h "gpus: 0.5") && there=$(on beside "gpus: 0.5") && job_becomes "$there" RUNNING 120 &&
	test "$(lock_of h)" = lab,theirs && n_pods "$here" 0 && grep "node h: locked for lab,theirs" gpuqd.log &&
	note_node h hami.io/mutex.lock "$(now -d "301 seconds ago"),lab,theirs" && job_becomes "$here" RUNNING 120 && job_is "$here" attempt 0 && gpuq cancel "$here" "$there" && wait_for 60 node_frees h 2
'

test_expect_success 'AC-HAMI-5: the 21st pod of two cards that are split for ten waits, although memory is free' '
	many=$(part "gpu_memory: 100Mi\nnode_selector: {kind: h}\narray: 1-21") && wait_for 300 eval "gpuq queue --json -t RUNNING >queue.out; test \$(wc -l <queue.out) = 20" &&
	wait_for 60 eval "gpuq why $many >why; grep Resources why" && no_harm && test "$(grep -c ^served h.log)" -ge 20 &&
	gpuq cancel "$many" && wait_for 120 node_frees h 2
'

test_expect_success 'a pod that the scheduler of HAMi has bound counts by its cards, memory and cores' '
	kube create default/pods - >/dev/null <<-END && wait_for 60 node_has beside devices.0.free_cores 40 && node_has beside devices.0.free_memory_mib 7680 &&
	{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "theirs", "annotations": {"gpuq.test/hang": "true", "hami.io/vgpu-node": "beside",
	 "hami.io/bind-phase": "success", "hami.io/vgpu-devices-allocated": "GPU-beside-0,NVIDIA,7680,60:;"}}, "spec": {"nodeName": "beside",
	 "containers": [{"name": "c", "image": "$kube_image", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
	END
	two=$(on beside "gpus: 2\ngpu_memory: 8000Mi") && wait_for 60 job_is "$two" reason Fragmented && n_pods "$two" 0 && gpuq cancel "$two"
'

test_expect_success 'AC-HAMI-2: a plugin that does not answer: the pod goes, its lock with it, and it is made again' '
	stop_gpuqd && echo "plugin_timeout: 2s" >gpuqd.yaml && touch silent && end_plugin h && plugin hami h devices=2 size=15360 broken="$PWD/silent" &&
	start_kube_gpuqd --config gpuqd.yaml && id=$(on h "gpus: 0.5") && wait_for 120 eval "job $id evictions.0.rule | grep plugin_timeout" && rm silent &&
	job_becomes "$id" RUNNING 120 && test "$(job "$id" attempt)" -ge 1 && wait_for 60 eval "test \"\$(lock_of h)\" = -" && n_pods "$id" 1 && no_harm && gpuq cancel "$id" && wait_for 60 node_frees h 2
'

test_expect_success 'a plugin that fails: device number not matched; the job starts again' '
	touch fails && end_plugin h && plugin hami h devices=2 size=15360 fails="$PWD/fails" && id=$(on h "gpus: 0.5") && wait_for 60 grep "refused .*device number not matched" h.log &&
	rm fails && job_becomes "$id" RUNNING 180 && test "$(job "$id" attempt)" -ge 1 && n_pods "$id" 1 && gpuq cancel "$id" && wait_for 60 node_frees h 2
'

test_expect_success 'gpuqd is killed again and again while pods wait for their lock: each job has one pod, no lock stays' '
	: >ids && for round in 1 2 3 4; do
		for n in 1 2; do on slow "gpus: 0.1" >>ids || return 1; done && sleep "0.$((round * 3))" && kill_gpuqd && start_kube_gpuqd || return 1
	done && for id in $(cat ids); do job_becomes "$id" RUNNING 180 && n_pods "$id" 1 || return 1; done && no_harm &&
	wait_for 60 eval "test \"\$(lock_of slow)\" = -" && gpuq cancel $(cat ids) && wait_for 120 node_frees slow 2
'

test_expect_success 'a plugin that is gone: the cards are not given out, running jobs stay' '
	id=$(on h "gpus: 0.5") && job_becomes "$id" RUNNING 120 && end_plugin h && kube patch nodes/h/status "{\"status\": {\"allocatable\": {\"nvidia.com/gpu\": \"0\"}}}" >/dev/null &&
	wait_for 60 node_has h devices.0.state unhealthy && next=$(on h "gpus: 0.1") && wait_for 60 job_is "$next" state PENDING && n_pods "$next" 0 && job_is "$id" state RUNNING
'

test_expect_success 'nothing was over-committed' 'no_harm && stop_gpuqd && end_plugins && nothing_was_overcommitted'

test_done
