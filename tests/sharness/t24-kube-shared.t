#!/bin/sh
test_description='real control plane: nodes whose devices a plugin shares: Aliyun gpushare, Tencent gpu-manager'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/plugins.sh"

cluster_for_gpuqd

# vcuda CORE BLOCKS: the example of kubernetes-gpusharing, with these amounts
vcuda() {
	sed -e "s/\(vcuda-core: *\)[0-9]*/\1$1/" -e "s/\(vcuda-memory: *\)[0-9]*/\1$2/" "$test_source/examples/seeds/vcuda-pod.yaml"
}

test_expect_success 'AC-ALI-2, AC-ALI-4: parts in units fill a device; what the plugin reads is on the pod, and it serves it' '
	cluster node s gpus=0 aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4 label=kind=gpushare && start_kube_gpuqd && wait_for 60 node_frees s 4 &&
	plugin gpushare s && for i in 1 2 3 4; do id=$(part "gpu_memory: 5Gi\nnode_selector: {kind: gpushare}") && job_becomes "$id" RUNNING 120 &&
		echo "$id $(noted "$id" ALIYUN_COM_GPU_MEM_IDX) $(noted "$id" ALIYUN_COM_GPU_MEM_DEV) $(noted "$id" ALIYUN_COM_GPU_MEM_POD)" || return 1; done >all &&
	cut -d" " -f2- all >got && printf "0 15 5\n0 15 5\n0 15 5\n1 15 5\n" >want && test_cmp want got && ! grep -E "failed|confused" s.log &&
	gpuq cancel $(cut -d" " -f1 all) && wait_for 60 node_frees s 4
'

test_expect_success 'AC-ALI-5: two of one amount go one after another, and one of another amount beside them' '
	cluster node slow gpus=0 aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4 label=kind=slow && wait_for 60 node_frees slow 4 && plugin gpushare slow delay=2 &&
	for g in 5 5 7; do part "gpu_memory: ${g}Gi\nnode_selector: {kind: slow}" || return 1; done >ids &&
	for id in $(cat ids); do job_becomes "$id" RUNNING 120 || return 1; done && ! grep -E "failed|confused" slow.log &&
	grep -q "waiting 2" slow.log && ! grep -q "waiting 3" slow.log && gpuq cancel $(cat ids)
'

test_expect_success 'AC-ALI-3, AC-ALI-13: what no device of the cluster can hold is refused at once' '
	printf "image: $kube_image\ncommand: [a]\ngpu_memory: 16Gi\n" >much && exits 1 gpuq submit much && grep "largest device 15 GiB" err &&
	printf "image: $kube_image\ncommand: [a]\ngpus: 2\ngpu_memory: 10Gi\n" >many && exits 1 gpuq submit many && grep HAMi err
'

test_expect_success 'AC-GAIA-1: the matrix row gpu-manager share: best fit by cores and memory, predicted as the plugin chooses' '
	cluster node g gpus=0 tencent.com/vcuda-core=300 tencent.com/vcuda-memory=190 label=kind=gaia && wait_for 60 node_frees g 3 && plugin gpu-manager g devices=3 &&
	gaia() { part "gpu_cores: $1\ngpu_memory: $(($2 * 256))Mi\nnode_selector: {kind: gaia}"; } &&
	for want in "60 43 0" "40 33 1" "30 15 0"; do id=$(gaia ${want% *}) && job_becomes "$id" RUNNING 120 &&
		test "$(noted "$id" tencent.com/predicate-gpu-idx-0)" = "${want##* }" && echo "$id" || return 1; done >ids && ! grep -E "refused|confused" g.log &&
	gpuq cancel $(cat ids) && wait_for 60 node_frees g 3
'

test_expect_success 'AC-GAIA-4: one at a time on a node, whatever it asks for' '
	cluster node g2 gpus=0 tencent.com/vcuda-core=200 tencent.com/vcuda-memory=127 label=kind=g2 && wait_for 60 node_frees g2 2 && plugin gpu-manager g2 delay=1 &&
	for c in 30 30 40; do part "gpu_cores: $c\ngpu_memory: 2560Mi\nnode_selector: {kind: g2}" || return 1; done >ids &&
	for id in $(cat ids); do job_becomes "$id" RUNNING 120 || return 1; done && ! grep -E "refused|confused|waiting 2" g2.log && gpuq cancel $(cat ids) && wait_for 60 node_frees g2 2
'

test_expect_success 'AC-GAIA-7: a soft limit is told to the plugin, and 30 are taken; AC-KGS-2: what the user wrote stays' '
	soft=$(part "gpu_cores: {request: 30, limit: 80}\ngpu_memory: 2560Mi\nnode_selector: {kind: g2}" "a: \"1\", b: \"2\"") && job_becomes "$soft" RUNNING 120 &&
	test "$(noted "$soft" tencent.com/vcuda-core-limit)" = 80 && test "$(noted "$soft" a)$(noted "$soft" b)" = 12 && wait_for 60 node_frees g2 1.7 && gpuq cancel "$soft"
'

test_expect_success 'AC-GAIA-3: the matrix row gpu-manager whole: devices are the plugin'\''s choice, and read back; AC-POD-4' '
	cluster node g4 gpus=0 tencent.com/vcuda-core=400 tencent.com/vcuda-memory=252 label=kind=g4 && wait_for 60 node_frees g4 4 && plugin gpu-manager g4 devices=4 &&
	two=$(part "gpus: 2\nnode_selector: {kind: g4}") && job_becomes "$two" RUNNING 120 && grep "served .* 2,3 200" g4.log &&
	wait_for 60 job_is "$two" pods.0.devices.0.index 2 && job_is "$two" pods.0.devices.1.index 3 && job_is "$two" attempt 0
'

test_expect_success 'AC-GAIA-2: another choice among equals: the pod is made again without a prediction, at nobody'\''s expense' '
	cluster node tie gpus=0 tencent.com/vcuda-core=200 tencent.com/vcuda-memory=127 label=kind=tie && wait_for 60 node_frees tie 2 && echo 5 0 >pids &&
	plugin gpu-manager tie processes="$PWD/pids" && id=$(part "gpu_cores: 30\ngpu_memory: 2560Mi\nnode_selector: {kind: tie}") && job_becomes "$id" RUNNING 120 &&
	grep "refused .* pick up:1 predicate: 0" tie.log && grep "served .* 1 30 10" tie.log && wait_for 60 job_is "$id" pods.0.devices.0.index 1 && gpuq cancel "$id" "$two"
'

test_expect_success 'AC-GAIA-6: pods of others reduce what is free of their device, by cores or memory' '
	wait_for 60 node_frees tie 2 && kube create default/pods - >/dev/null <<-END && wait_for 60 node_frees tie 1.206
	{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "theirs", "annotations": {"tencent.com/predicate-gpu-idx-0": "1", "tencent.com/gpu-assigned": "true",
	 "gpuq.test/hang": "true"}}, "spec": {"nodeName": "tie", "containers": [{"name": "c", "image": "$kube_image", "resources": {"limits":
	 {"tencent.com/vcuda-core": "30", "tencent.com/vcuda-memory": "50"}}}]}}
	END
'

test_expect_success 'AC-KGS-1, AC-GAIA-5: requests that gpu-manager has no meaning for are refused, in any container' '
	for bad in "150 30" "0 15" "50 0" "101 0" "199 0" "99 0"; do vcuda $bad >bad.yaml && exits 1 gpuq submit bad.yaml && grep -E "expected" err || return 1; done &&
	for good in "50 15" "100 0" "200 0"; do vcuda $good >good.yaml && gpuq submit --dry-run good.yaml || return 1; done
'

test_expect_success 'nothing was over-committed' 'stop_gpuqd && end_plugins && nothing_was_overcommitted'

test_done
