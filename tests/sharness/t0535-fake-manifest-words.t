#!/bin/sh
test_description='what a manifest requests beside devices: nothing uncounted, and no devices for jobs without any'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# asks 'LIMITS' ['ANNOTATIONS']: submits a pod of them; prints its id
asks() {
	cat >asks.yaml <<-END
	{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {gpuq.test/hang: "true"${2+, $2}}},
	 spec: {containers: [{name: c, image: test, command: [a], resources: {limits: {$1}}}]}}
	END
	submit asks.yaml
}

# refused TEXT 'LIMITS' ['ANNOTATIONS']
refused() {
	refused_text=$1
	shift
	if asks "$@" >out 2>err; then
		echo "accepted: $*"
		return 1
	fi
	grep -F "$refused_text" err || { cat err; return 1; }
}

# sees ID: what its container is told of the devices
sees() {
	api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$1" | /usr/bin/python3 -c '
import json, sys
env = json.load(sys.stdin)["items"][0]["spec"]["containers"][0]["env"]
print(*[e["value"] for e in env if e["name"] == "NVIDIA_VISIBLE_DEVICES"])'
}

test_expect_success 'words that come with no device are refused where they stand alone' '
	start_fake --nodes 1 --gpus 4 && offers node-0000 "\"nvidia.com/hostdev\": \"4\", \"rdma/hca\": \"4\"" && start_fake_gpuqd &&
	wait_for 60 eval "gpuq nodes --json | grep -q hostdev" &&
	refused "limits.aliyun.com/gpu-count: tells how many devices a node has: request aliyun.com/gpu-mem" "aliyun.com/gpu-count: 1" &&
	refused "aliyun.com/gpu-count: tells" "nvidia.com/gpu: 1, aliyun.com/gpu-count: 1" && grep "^gpuq: asks.yaml:2:" err &&
	refused "limits.nvidia.com/priority: expected nvidia.com/gpu beside it" "nvidia.com/priority: 1" &&
	refused "limits.nvidia.com/gpu: expected at least 1 beside" "nvidia.com/gpu: 0, nvidia.com/gpucores: 30"
'

test_expect_success 'where no system reads the words of another, its pod has none of them' '
	a=$(asks "nvidia.com/gpu: 1, nvidia.com/priority: 1, nvidia.com/gpucores: 0") && job_becomes "$a" RUNNING && limits "$a" >got && cat got &&
	grep "\"nvidia.com/gpu\": \"1\"" got && ! grep priority got && ! grep gpucores got && test -z "$(sees "$a")"
'

test_expect_success 'a job without devices sees none, whatever it requests of NVIDIA' '
	a=$(asks "nvidia.com/hostdev: 1") && job_becomes "$a" RUNNING && test "$(sees "$a")" = void && limits "$a" | grep hostdev &&
	echo "{command: [a], image: test, resources: {nvidia.com/hostdev: 1}, annotations: {gpuq.test/hang: \"true\"}}" >h.yaml &&
	a=$(submit h.yaml) && job_becomes "$a" RUNNING && test "$(sees "$a")" = void
'

test_expect_success 'a part of a device keeps what is counted beside it' '
	offers node-0000 "\"nvidia.com/gpu\": \"4\"" "\"nvidia.com/gpu.replicas\": \"2\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\"" &&
	gpuq cancel -t R >/dev/null && wait_for 60 node_is node-0000 free_gpus 2 &&
	a=$(asks "nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 50, nvidia.com/hostdev: 2") && job_becomes "$a" RUNNING && limits "$a" >got && cat got &&
	grep "\"nvidia.com/hostdev\": \"2\"" got && ! grep percentage got
'

test_expect_success 'the soft limit of gpu-manager is checked as that of a job file is' '
	for wrong in 180 20 0 abc; do
		refused "annotations.tencent.com/vcuda-core-limit: expected \"50\" to \"100\"" "tencent.com/vcuda-core: 50, tencent.com/vcuda-memory: 4" \
			"tencent.com/vcuda-core-limit: \"$wrong\"" || return 1
	done
'

no_harm_was_done

test_done
