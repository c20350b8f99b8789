# gpushare.sh - parts of devices on a node with the gpushare plugin: what gets which, what its pod is told; sourced after
# fake.sh or kube.sh
#
# The same on every cluster: before it is sourced there are
#	$first		a node without devices, the only one
#	$pods		the API path of gpuqd's pods, below /api/v1
#	api METHOD PATH [BODY]
#	begin, daemon	the cluster; gpuqd

# its_pod ID
its_pod() {
	api GET "$pods?labelSelector=gpuq.io/job=$1" | json items.0.metadata.name
}

# notes ID: index, device, pod, assigned of its pod
notes() {
	api GET "$pods?labelSelector=gpuq.io/job=$1" | /usr/bin/python3 -c '
import json, sys
a = json.load(sys.stdin)["items"][0]["metadata"]["annotations"]
print(*(a.get("ALIYUN_COM_GPU_MEM_" + k, "-") for k in ("IDX", "DEV", "POD", "ASSIGNED")))'
}

# What the plugin does when the kubelet asks it.
serve() {
	api PATCH "$pods/$(its_pod "$1")" '{"metadata": {"annotations": {"ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}}}' >/dev/null
}

has_notes() {
	[ "$(notes "$1")" = "$2" ] || { echo "its pod is told '$(notes "$1")', not '$2'"; return 1; }
}

# part GIB: a job of such a part of a device; prints its id
part() {
	echo "{command: [a], image: test, gpu_memory: ${1}Gi, annotations: {gpuq.test/hang: 'true', gpuq.test/start: ${2-200ms}}}" | submit -
}

# hanging KEYS: a job until it is cancelled
hanging() {
	echo "{command: [a], image: test, $1, annotations: {gpuq.test/hang: 'true'}}" | submit -
}

test_expect_success 'a node with 60 units on four devices: 15 GiB each' '
	begin && api PATCH "/nodes/$first/status" "{\"status\": {
		\"capacity\": {\"aliyun.com/gpu-mem\": \"60\", \"aliyun.com/gpu-count\": \"4\"},
		\"allocatable\": {\"aliyun.com/gpu-mem\": \"60\", \"aliyun.com/gpu-count\": \"4\"}}}" >/dev/null &&
	daemon && wait_for 60 eval "test \$(free_gpus) = 4" &&
	gpuq nodes --json >nodes.out && test "$(json devices.3.memory_mib <nodes.out)" = 15360
'

test_expect_success 'a part is asked for in units, and the pod carries what the plugin reads' '
	a=$(part 5) && job_becomes "$a" RUNNING && has_notes "$a" "0 15 5 false" &&
	api GET "$pods?labelSelector=gpuq.io/job=$a" >pod.out &&
	grep -q "\"aliyun.com/gpu-mem\": *\"5\"" pod.out && ! grep -q nvidia.com/gpu pod.out && job_is "$a" pods.0.devices.0.index 0 &&
	job_is "$a" pods.0.devices.0.memory_mib 5120 && gpuq status "$a" >status && says status "gpu 0\(0.33[0-9]*, 5Gi, cores not limited\)"
'

test_expect_success 'a device is filled to its last unit before the next is opened' '
	for i in 1 2 3; do serve "$a" && more=$(part 5) && job_becomes "$more" RUNNING && serve "$more" && echo "$more" || return 1; done >ids &&
	for i in $(cat ids); do notes "$i" || return 1; done >all && cut -d" " -f1 all | tr "\\n" " " >index && test "$(cat index)" = "0 0 1 " &&
	gpuq cancel $(cat ids) && wait_for 60 eval "gpuq nodes --json | json free_gpus | grep -q ^3.6"
'

test_expect_success 'another of the same amount waits until the first has its part' '
	slow=$(part 5 60s) && wait_for 60 has_notes "$slow" "0 15 5 false" && second=$(part 5) && third=$(part 4) &&
	wait_for 60 has_notes "$third" "1 15 4 false" && test -z "$(its_pod "$second" | grep gpuq)" &&
	serve "$slow" && job_becomes "$second" RUNNING && has_notes "$second" "0 15 5 false"
'

test_expect_success 'AC-ALI-9: what others hold on a device is not given away' '
	gpuq cancel "$a" "$slow" "$second" "$third" && wait_for 60 eval "test \$(free_gpus) = 4" &&
	api POST /namespaces/default/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"theirs\",
		\"annotations\": {\"gpuq.test/hang\": \"true\", \"ALIYUN_COM_GPU_MEM_IDX\": \"0\", \"ALIYUN_COM_GPU_MEM_DEV\": \"15\", \"ALIYUN_COM_GPU_MEM_POD\": \"9\",
		\"ALIYUN_COM_GPU_MEM_ASSIGNED\": \"true\"}}, \"spec\": {\"nodeName\": \"$first\", \"containers\": [{\"name\": \"c\", \"image\": \"test\",
		\"resources\": {\"limits\": {\"aliyun.com/gpu-mem\": \"9\"}}}]}}" >/dev/null && wait_for 60 eval "test \$(free_gpus) = 3.4" &&
	six=$(part 6) && job_becomes "$six" RUNNING && seven=$(part 7) && job_becomes "$seven" RUNNING &&
	has_notes "$six" "0 15 6 false" && has_notes "$seven" "1 15 7 false" && gpuq cancel "$six" "$seven"
'

test_expect_success 'AC-ALI-7: a manifest that asks in its own dialect runs, and names no devices itself; so does a whole device' '
	wait_for 60 eval "test \$(free_gpus) = 3.4" && cat >player.yaml <<-END && id=$(submit player.yaml) && job_becomes "$id" RUNNING && has_notes "$id" "0 15 5 false" &&
	apiVersion: v1
	kind: Pod
	metadata: {name: gpu-player, annotations: {gpuq.test/hang: "true"}}
	spec:
	  containers:
	  - name: gpu-player
	    image: cheyang/gpu-player:v2
	    env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]
	    resources: {limits: {aliyun.com/gpu-mem: 5}}
	END
	api GET "$pods?labelSelector=gpuq.io/job=$id" >pod.out && ! grep -q NVIDIA_VISIBLE_DEVICES pod.out &&
	whole=$(hanging "gpus: 1") && job_becomes "$whole" RUNNING && has_notes "$whole" "1 15 15 false" && gpuq cancel "$whole" "$id"
'

# manifest LIMIT...: a pod with a container for each
manifest() {
	printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n'
	for manifest_limit in "$@"; do
		printf '  - {name: c%s, image: test, resources: {limits: {aliyun.com/gpu-mem: %s}}}\n' "$manifest_limit" "$manifest_limit"
	done
}

test_expect_success 'AC-ALI-6, AC-ALI-11: one container has the part, in plain units' '
	manifest 3 2 >pods.yaml && exits 1 gpuq submit pods.yaml && grep "only one can have a share of a device" err &&
	manifest 5Gi >pods.yaml && exits 1 gpuq submit pods.yaml && grep "expected a whole number without a unit" err &&
	manifest 0 >pods.yaml && exits 1 gpuq submit pods.yaml && grep "expected at least 1" err && manifest 5 >pods.yaml && gpuq submit --dry-run pods.yaml
'

test_expect_success 'AC-ALI-3, AC-ALI-13: two devices for one pod, or more than a device has: not here, and it says so' '
	two=$(hanging "gpus: 2") && wait_for 60 job_is "$two" reason Unsatisfiable && gpuq cancel "$two" &&
	echo "{command: [a], image: test, gpu_memory: 16Gi}" >much.yaml && exits 1 gpuq submit much.yaml && grep "largest device 15 GiB" err &&
	echo "{command: [a], image: test, gpus: 2, gpu_memory: 10Gi}" >many.yaml && exits 1 gpuq submit many.yaml && grep "HAMi" err
'

test_expect_success 'a pool that names another system: its node is left alone, and says why' '
	echo "{version: 1, pools: [{name: s, sharing: gpu-manager}]}" >site.yaml && gpuq apply -f site.yaml &&
	wait_for 60 eval "gpuq nodes --json | json note | grep \"pool s has sharing: gpu-manager, the node has gpushare\"" &&
	kept=$(part 5) && wait_for 60 job_is "$kept" reason NodesUnavailable &&
	echo "{version: 1, pools: [{name: s, sharing: gpushare}]}" >site.yaml && gpuq apply -f site.yaml && job_becomes "$kept" RUNNING &&
	serve "$kept" && gpuq cancel "$kept" && echo "{version: 1, pools: [{name: s, sharing: kai}]}" >site.yaml && exits 1 gpuq apply -f site.yaml &&
	grep "gpu-manager" err
'
