#!/bin/sh
test_description='real control plane: gpushare as on the fake apiserver, the samples of each system, and what gpuqd does not serve'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/plugins.sh"

cluster_for_gpuqd

begin() {
	cluster node s gpus=0
}

daemon() {
	start_kube_gpuqd
}

# ---- the matrix row Aliyun gpushare: the same tests as t0506-fake-gpushare.t ----

first=s pods=/namespaces/gpuq-jobs/pods
. "$test_source/tests/sharness/gpushare.sh"

# ---- what others have written, each on a node of its own system ----

# pool_is SHARING: of the one pool of the tests above
pool_is() {
	echo "{version: 1, pools: [{name: s, sharing: $1}]}" >pool.yaml && gpuq apply -f pool.yaml
}

# sample FILE NODE: it runs to its end there, with nothing changed but the fate that kwok reads
sample() {
	gpuq cancel -t R,PD,CF >/dev/null
	sample_id=$(submit --annotation=gpuq.test/run=300ms ${3+"$3"} "$test_source/examples/seeds/$1") && job_becomes "$sample_id" COMPLETED 180 &&
		job_is "$sample_id" pods.0.node "$2" && job_is "$sample_id" attempt 0 && job_is "$sample_id" exit_code 0
}

test_expect_success 'the matrix row Aliyun gpushare: gpushare-test-pod on a node of it, by its plugin' '
	pool_is auto && kube delete nodes/s >/dev/null && cluster node gs gpus=0 aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4 label=gpushare=true && wait_for 60 node_frees gs 4 &&
	plugin gpushare gs && sample gpushare-pod.yaml gs --annotation=gpuq.test/start=3600s && grep "served .* 0 5" gs.log && job_is "$sample_id" name gpushare-test-pod && kube delete nodes/gs >/dev/null
'

test_expect_success 'mnist-case on a node of gpu-manager, by its plugin' '
	cluster node gm gpus=0 tencent.com/vcuda-core=200 tencent.com/vcuda-memory=127 && wait_for 60 node_frees gm 2 && plugin gpu-manager gm &&
	sample vcuda-pod.yaml gm --annotation=gpuq.test/start=3600s && grep "served .* 0 50 15" gm.log && job_is "$sample_id" name mnist-case
'

test_expect_success 'sample-job and sample-job-a100 on nodes of whole devices, in the pools that they name' '
	for pool in t4 a100; do cluster node $pool gpus=2 label=cloud.google.com/gke-nodepool=dws-$pool-nodepool taint=nvidia.com/gpu=present:NoSchedule &&
		wait_for 60 node_frees $pool 2 && plugin nvidia $pool || return 1; done &&
	echo "{version: 1, queues: [{name: dws-local-queue, namespace: gpuq-jobs}]}" >site.yaml && gpuq apply -f site.yaml &&
	for pool in t4 a100; do sed "s/namespace: default/namespace: gpuq-jobs/" "$test_source/examples/seeds/dws-$pool.yaml" >$pool.yaml &&
		id=$(submit --annotation=gpuq.test/run=300ms --annotation=gpuq.test/start=3600s $pool.yaml) && job_becomes "$id" COMPLETED 180 && job_is "$id" pods.0.node $pool &&
		grep "served .* nvidia.com/gpu=1" $pool.log || return 1; done
'

# ---- the rows KAI and KubeShare: counted, never imitated ----

# theirs NAME NODE GPUS 'METADATA' [NAMESPACE]: a pod of another scheduler
theirs() {
	theirs_limits=
	[ "$3" = 0 ] || theirs_limits="\"nvidia.com/gpu\": \"$3\""
	kube create "${5-default}/pods" - >/dev/null <<-END
	{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1", $4}, "spec": {"nodeName": "$2",
	 "containers": [{"name": "c", "image": "$kube_image", "resources": {"limits": {$theirs_limits}}}]}}
	END
}

hang='"gpuq.test/hang": "true"'

test_expect_success 'AC-RAI-7: the matrix row KAI fractions: a reservation pod holds its card, the parts on it nothing more; no pod of gpuqd imitates one' '
	cluster node kai gpus=2 label=kind=kai && wait_for 60 node_frees kai 2 && kube apply -f - >/dev/null <<-END &&
	{apiVersion: v1, kind: Namespace, metadata: {name: kai-resource-reservation}}
	END
	theirs gpu-reservation-kai-1 kai 1 "\"labels\": {\"runai-gpu-group\": \"g1\"}, \"annotations\": {$hang, \"run.ai/reserve_for_gpu_index\": \"1\"}" kai-resource-reservation &&
	for half in 1 2; do theirs half-$half kai 0 "\"labels\": {\"runai-gpu-group\": \"g1\"}, \"annotations\": {$hang, \"gpu-fraction\": \"0.5\"}" || return 1; done &&
	wait_for 60 node_frees kai 1 && node_has kai devices.1.free_cores 0 && node_has kai devices.0.free_cores 100 && one=$(fake_job "gpus: 1\nnode_selector: {kind: kai}\n$(fate hang=true)") && job_becomes "$one" RUNNING 120 &&
	more=$(fake_job "gpus: 1\nnode_selector: {kind: kai}") && wait_for 60 job_is "$more" reason Resources && kube list gpuq-jobs/pods metadata.labels >labels &&
	kube delete kai-resource-reservation/pods/gpu-reservation-kai-1 && wait_for 60 node_has kai foreign_pods 2 && node_frees kai 0 && job_is "$more" reason Resources &&
	! grep runai labels && gpuq cancel "$one" "$more" && { gpuq doctor >doctor.out || true; } && grep -q "kai fractions.*counted as foreign" doctor.out
'

# fraction PART: a pod as KAI has it
fraction() {
	cat <<-END
	apiVersion: v1
	kind: Pod
	metadata: {name: part, annotations: {gpu-fraction: "$1", gpuq.test/start: 3600s, gpuq.test/hang: "true"}, labels: {kai.scheduler/queue: default}}
	spec:
	  schedulerName: kai-scheduler
	  containers: [{name: c, image: $kube_image}]
	END
}

test_expect_success 'AC-KAI-11: sixteen halves that ask in the words of KAI run where another system serves them, two a device, at the first try' '
	gpuq cancel -t R,PD,CF >/dev/null && for n in t4 a100 kai gm; do kube delete nodes/$n >/dev/null || return 1; done &&
	cluster node eight gpus=0 tencent.com/vcuda-core=800 tencent.com/vcuda-memory=504 && wait_for 60 node_frees eight 8 && plugin gpu-manager eight devices=8 &&
	fraction 0.5 >half.yaml && for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do submit half.yaml || return 1; done >ids &&
	for id in $(cat ids); do job_becomes "$id" RUNNING 180 && job_is "$id" attempt 0 || return 1; done && ! grep -E "refused|confused" eight.log &&
	sed -n "s/^served [^ ]* \([0-7]\) 50 .*/\1/p" eight.log | sort | uniq -c | tr -s " " >pairs && printf " 2 %s\n" 0 1 2 3 4 5 6 7 >want && test_cmp want pairs &&
	gpuq cancel $(cat ids) && wait_for 60 node_frees eight 8
'

test_expect_success 'AC-KAI-11: a quarter runs on HAMi and on gpushare as well' '
	kube delete nodes/eight >/dev/null && kube apply -f "$test_source/etc/kubernetes/optional/hami.yaml" >/dev/null &&
	pool_is hami &&
	cluster node h gpus=0 nvidia.com/gpu=20 label=kind=h && plugin hami h devices=2 size=15360 && wait_for 60 node_has h sharing hami &&
	fraction 0.25 >part.yaml && a=$(submit part.yaml) && job_becomes "$a" RUNNING 120 && job_is "$a" pods.0.node h && grep "served .* 3840 25" h.log && gpuq cancel "$a" && job_becomes "$a" CANCELLED 60 &&
	kube delete nodes/h >/dev/null && pool_is auto && cluster node gs gpus=0 aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4 && wait_for 60 node_frees gs 4 && b=$(submit part.yaml) && job_becomes "$b" RUNNING 120 &&
	job_is "$b" pods.0.node gs && grep "served .* 0 3" gs.log && gpuq cancel "$b"
'

test_expect_success 'AC-KSH-1, AC-KSH-2: the matrix row KubeShare: its pods count by what their labels request, and gpuqd serves none' '
	cluster node ksh gpus=2 label=kind=ksh label=SharedGPU=true && wait_for 60 node_frees ksh 2 &&
	for part in 0.5 0.3; do theirs ksh-$part ksh 0 "\"labels\": {\"sharedgpu/gpu_request\": \"$part\", \"sharedgpu/gpu_limit\": \"1.0\"}, \"annotations\": {$hang, \"sharedgpu/gpu_uuid\": \"GPU-0\", \"sharedgpu/gpu_mem\": \"1073741824\", \"sharedgpu/gpu_manager_port\": \"50050\"}" || return 1; done &&
	wait_for 60 node_frees ksh 1.2 && one=$(fake_job "gpus: 1\nnode_selector: {kind: ksh}\n$(fate hang=true)") && job_becomes "$one" RUNNING 120 &&
	more=$(fake_job "gpus: 1\nnode_selector: {kind: ksh}") && wait_for 60 job_is "$more" reason Resources && theirs ksh-two ksh 0 "\"labels\": {\"sharedgpu/gpu_request\": \"2.0\", \"sharedgpu/gpu_limit\": \"2.0\"}, \"annotations\": {$hang}" &&
	kube delete default/pods/ksh-0.5 && kube delete default/pods/ksh-0.3 && gpuq cancel "$one" "$more" && job_becomes "$one" CANCELLED 60 && wait_for 60 node_frees ksh 0 && { gpuq doctor >doctor.out || true; } && grep -q "kubeshare.*counted as foreign" doctor.out
'

test_expect_success 'AC-ALI-8: a pod that the plugin does not serve is made again with a fresh time; then the node is suspect, and another has it' '
	gpuq cancel -t R,PD,CF >/dev/null && stop_gpuqd && echo "plugin_timeout: 1s" >gpuqd.yaml && start_kube_gpuqd --config gpuqd.yaml && touch broken &&
	cluster node b1 gpus=0 aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4 label=kind=broken && wait_for 60 node_frees b1 4 && plugin gpushare b1 broken="$PWD/broken" &&
	id=$(fake_job "gpu_memory: 5Gi\nnode_selector: {kind: broken}\n$(fate hang=true start=3600s)") && assumed() { kube list "gpuq-jobs/pods?labelSelector=gpuq.io/job=$id" metadata.annotations.ALIYUN_COM_GPU_MEM_ASSUME_TIME; } &&
	wait_for 60 grep "^failed" b1.log && first=$(assumed) && wait_for 60 eval "test \"\$(grep -c ^failed b1.log)\" = 2" && test "$(assumed)" -gt "$first" &&
	cluster node b2 gpus=0 aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4 label=kind=broken && plugin gpushare b2 && job_becomes "$id" RUNNING 120 && job_is "$id" pods.0.node b2 && job_is "$id" attempt 2 &&
	node_is b1 suspect && job_is "$id" evictions.0.rule plugin_timeout && job "$id" evictions.1.why | grep no-gpu-has-5GiB-to-run && n_pods "$id" 1 && gpuq cancel "$id"
'

test_expect_success 'nothing was over-committed' 'stop_gpuqd && end_plugins && nothing_was_overcommitted'

test_done
