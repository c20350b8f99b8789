#!/bin/sh
test_description='real control plane: MIG instances that NVIDIA'\''s plugin offers in replicas'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/plugins.sh"

cluster_for_gpuqd --nodes 1 --gpus 0

# on NODE 'KEYS': a job there until it is cancelled, which starts when the kubelet has admitted it
on() {
	part "$2\nnode_selector: {kind: $1}"
}

# pod NODE 'LIMITS': a manifest of such a pod
pod() {
	cat <<-END
	{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {gpuq.test/start: 3600s, gpuq.test/hang: "true"}},
	 spec: {nodeSelector: {kind: $1}, containers: [{name: c, image: $kube_image, command: [a], resources: {limits: {$2}}}]}}
	END
}

# no_refusals: the kubelets refused nothing
no_refusals() {
	! grep refused ./*.log
}

# fill NODE N: N jobs and one more, of which the last waits; their ids are in the file ids
fill() {
	pod "$1" "nvidia.com/mig-1g.10gb.shared: 1" >one.yaml && submit one.yaml >ids || return 1
	fill_n=1
	while [ $fill_n -lt "$2" ]; do
		on "$1" "mig: 1g.10gb.shared" >>ids || return 1
		fill_n=$((fill_n + 1))
	done
	for id in $(cat ids); do job_becomes "$id" RUNNING 120 && job_is "$id" attempt 0 || return 1; done
	next=$(on "$1" "mig: 1g.10gb.shared") && wait_for 60 job_is "$next" reason Resources
}

test_expect_success 'AC-NV-2: replicas of instances with a name of their own: seven instances in two are a card, a fourteenth each' '
	start_kube_gpuqd && cluster node a gpus=0 nvidia.com/mig-1g.10gb.shared=14 label=kind=a label=nvidia.com/mig.strategy=mixed label=nvidia.com/mig-1g.10gb.replicas=2 \
		label=nvidia.com/mig-1g.10gb.sharing-strategy=time-slicing && wait_for 60 node_has a mig.0.count 14 && node_has a gpus 1 && node_has a free_gpus 1 && plugin nvidia a &&
	fill a 14 && job_is "$id" gpus 0.071 && job_is "$id" isolation time-slice && test "$(limits "$id")" = "{\"nvidia.com/mig-1g.10gb.shared\": \"1\"}" && node_has a free_gpus 0 && no_refusals &&
	whole=$(on a "mig: 1g.10gb") && wait_for 60 job_is "$whole" reason Unsatisfiable && gpuq cancel "$whole" && gpuq cancel "$id" && job_becomes "$next" RUNNING 120 && gpuq cancel "$next" $(sed "\$d" ids)
'

test_expect_success '... that kept the name of the instances: a pod that names replicas has one by that' '
	cluster node b gpus=0 nvidia.com/mig-1g.10gb=4 label=kind=b label=nvidia.com/mig.strategy=mixed label=nvidia.com/mig-1g.10gb.replicas=4 label=nvidia.com/mig-1g.10gb.sharing-strategy=time-slicing \
		label=nvidia.com/mig-1g.10gb.product=NVIDIA-H100-MIG-1g.10gb-SHARED && wait_for 60 node_has b mig.0.count 4 && node_has b mig.0.replicas 4 && plugin nvidia b &&
	fill b 4 && job_is "$id" gpus 0.035 && for one in $(sed -n "1p;2p" ids); do test "$(limits "$one")" = "{\"nvidia.com/mig-1g.10gb\": \"1\"}" || return 1; done && no_refusals && gpuq cancel "$next" $(cat ids)
'

test_expect_success '... of the single strategy, which have the name of devices' '
	cluster node c gpus=0 nvidia.com/gpu=6 label=kind=c label=nvidia.com/mig.strategy=single label=nvidia.com/gpu.count=3 label=nvidia.com/gpu.replicas=2 label=nvidia.com/gpu.sharing-strategy=time-slicing \
		label=nvidia.com/gpu.product=NVIDIA-H100-MIG-1g.10gb-SHARED label=nvidia.com/gpu.memory=9984 && wait_for 60 node_has c mig.0.count 6 && node_has c mig.0.profile 1g.10gb.shared && plugin nvidia c one=yes &&
	fill c 6 && for one in $(sed -n "1p;2p" ids); do test "$(limits "$one")" = "{\"nvidia.com/gpu\": \"1\"}" && job_is "$one" gpus 0.071 || return 1; done && no_refusals && gpuq cancel "$next" $(cat ids)
'

test_expect_success 'no kubelet refused a pod, nothing was over-committed' 'no_refusals && stop_gpuqd && end_plugins && nothing_was_overcommitted'

test_done
