#!/bin/sh
test_description='nodes whose resources and labels cannot be true: left alone, and they say why'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

nothing='"nvidia.com/gpu": null, "nvidia.com/mig-1g.5gb": null, "nvidia.com/mig-x": null, "aliyun.com/gpu-mem": null, "aliyun.com/gpu-count": null,
	"tencent.com/vcuda-core": null, "tencent.com/vcuda-memory": null'
no_labels='"nvidia.com/gpu.replicas": null, "nvidia.com/gpu.sharing-strategy": null, "nvidia.com/gpu.count": null, "nvidia.com/gpu.product": null,
	"nvidia.com/mig.strategy": null, "gpushare": null'

# lies NOTE 'RESOURCES' 'LABELS': node-0001 with these has no device that can be had, and NOTE says why
lies() {
	offers node-0001 "$nothing" "$no_labels" && wait_for 60 node_is node-0001 gpus 0 && offers node-0001 "$2" "$3" &&
		wait_for 60 eval "node node-0001 note | grep -F -e '$1'" && node_is node-0001 free_gpus 0 && gpuq nodes >listed &&
		gpuq doctor >doctor && ! grep "no plugin offers them.*node-0001" doctor
}

test_expect_success 'devices that are shared, in how many replicas is not known' '
	start_fake --nodes 2 --gpus 4 && start_fake_gpuqd && wait_for 60 node_is node-0001 gpus 4 &&
	for replicas in 0 many 99999999999999999999; do
		lies "label nvidia.com/gpu.replicas does not say" "\"nvidia.com/gpu\": \"80\"" \
			"\"nvidia.com/gpu.sharing-strategy\": \"time-slicing\", \"nvidia.com/gpu.replicas\": \"$replicas\"" || return 1
	done && lies "label nvidia.com/gpu.replicas does not say" "\"nvidia.com/gpu\": \"80\"" "\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB-SHARED\"" &&
	grep "nodes.*node-0001 (its devices are shared.*none is used)" doctor && ! grep "^warning *inventory" doctor
'

test_expect_success 'the inventory of the site may say it' '
	echo "{version: 1, inventory: [{selector: {kubernetes.io/hostname: node-0001}, replicas: 10}]}" >site.yaml && gpuq apply -f site.yaml >/dev/null &&
	wait_for 60 node_is node-0001 gpus 8 && node_is node-0001 note null && echo "{version: 1, inventory: []}" >site.yaml && gpuq apply -f site.yaml >/dev/null
'

test_expect_success 'more devices than cards are replicas, in how many is not known: no job has them as whole ones' '
	lies "it offers 80 nvidia.com/gpu, and nvidia.com/gpu.count says 8 cards: none is used" "\"nvidia.com/gpu\": \"80\"" \
		"\"nvidia.com/gpu.count\": \"8\"" && grep "node-0001.*says 8 cards" doctor &&
	lies "it offers 20 nvidia.com/gpu, and nvidia.com/gpu.count says 2 cards" "\"nvidia.com/gpu\": \"20\"" \
		"\"nvidia.com/gpu.count\": \"2\", \"nvidia.com/gpu.replicas\": \"banana\"" &&
	lies "it offers 80 nvidia.com/gpu, and nvidia.com/gpu.count says 8 cards" "\"nvidia.com/gpu\": \"80\"" \
		"\"nvidia.com/gpu.count\": \"8\", \"nvidia.com/gpu.replicas\": \"ten\"" &&
	j=$(fake_job hang=true -g 20) && wait_for 60 job_is "$j" reason Unsatisfiable && gpuq cancel "$j" &&
	echo "{version: 1, inventory: [{selector: {kubernetes.io/hostname: node-0001}, replicas: 10}]}" >site.yaml && gpuq apply -f site.yaml >/dev/null &&
	wait_for 60 node_is node-0001 gpus 8 && node_is node-0001 sharing time-slicing && node_is node-0001 note null &&
	echo "{version: 1, inventory: [], pools: [{name: r, selector: {kubernetes.io/hostname: node-0001}, replicas_as_gpus: true}]}" >site.yaml &&
	gpuq apply -f site.yaml >/dev/null && wait_for 60 node_is node-0001 gpus 80 && node_is node-0001 note null &&
	echo "{version: 1, inventory: [], pools: [], queues: [{name: default}]}" | gpuq apply --prune -f - >/dev/null &&
	wait_for 60 node_is node-0001 gpus 0
'

test_expect_success 'amounts of plugins that share devices' '
	lies "aliyun.com/gpu-mem: 30 units on 5000000 devices are not credible" "\"aliyun.com/gpu-mem\": \"30\", \"aliyun.com/gpu-count\": \"5000000\"" "\"gpushare\": \"true\"" &&
	grep "gpushare: none of the offered devices can be used: node-0001" doctor &&
	lies "aliyun.com/gpu-mem: 9223372036854775807 is not credible" "\"aliyun.com/gpu-mem\": \"9223372036854775807\"" "" &&
	lies "aliyun.com/gpu-count: aliyun.com/gpu-mem is offered, and of 0 devices" "\"aliyun.com/gpu-mem\": \"30\", \"aliyun.com/gpu-count\": \"0\"" "" &&
	for cores in 50 250; do
		lies "tencent.com/vcuda-core: $cores: expected 100 of each device" "\"tencent.com/vcuda-core\": \"$cores\", \"tencent.com/vcuda-memory\": \"120\"" "" || return 1
	done &&
	lies "tencent.com/vcuda-memory: 80 blocks on 1000000000 devices" "\"tencent.com/vcuda-core\": \"100000000000\", \"tencent.com/vcuda-memory\": \"80\"" "" &&
	grep "gpu-manager: none of the offered devices can be used: node-0001" doctor
'

test_expect_success 'cards that are not all cut alike, and names that are no profiles' '
	lies "nvidia.com/gpu.product: expected a MIG profile behind -MIG-, not" "\"nvidia.com/gpu\": \"8\"" \
		"\"nvidia.com/gpu.product\": \"A100-MIG-INVALID\", \"nvidia.com/mig.strategy\": \"single\"" &&
	grep "single needs all cards.*: node-0001" doctor && grep "left alone.*node-0001 (nvidia.com/gpu.product: expected a MIG" doctor && ! grep "is down" doctor &&
	lies "nvidia.com/gpu.product: expected" "\"nvidia.com/gpu\": \"8\"" "\"nvidia.com/gpu.product\": \"A100-MIG-9g.5gb\", \"nvidia.com/mig.strategy\": \"single\"" &&
	lies "nvidia.com/mig-x: no MIG profile" "\"nvidia.com/mig-x\": \"4\"" ""
'

test_expect_success 'more than a node can have: the others are listed as before' '
	lies "it offers 999999999 devices" "\"nvidia.com/gpu\": \"999999999\"" "" &&
	lies "nvidia.com/mig-1g.5gb: more instances than 1024 cards" "\"nvidia.com/mig-1g.5gb\": \"99999999\"" "" && grep node-0000 listed &&
	lies "nvidia.com/mig-1g.5gb: more instances" "\"nvidia.com/gpu\": \"99999999\"" \
		"\"nvidia.com/gpu.product\": \"A100-MIG-1g.5gb\", \"nvidia.com/mig.strategy\": \"single\"" &&
	j=$(fake_job run=100ms -g 4) && job_becomes "$j" COMPLETED && job_is "$j" pods.0.node node-0000
'

test_expect_success 'what becomes true is used' '
	offers node-0001 "$nothing" "$no_labels" && offers node-0001 "\"nvidia.com/gpu\": \"4\"" "" && wait_for 60 node_is node-0001 free_gpus 4 &&
	node_is node-0001 note null && node_is node-0001 state idle
'

no_harm_was_done

test_done
