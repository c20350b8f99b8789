#!/bin/sh
test_description='real control plane: cards that a ConfigMap of gpushare lists as unhealthy'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd

listed() { # CARDS
	kube create kube-system/configmaps - >/dev/null <<-END
	{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unhealthy-gpu-s"}, "data": {"gpus": "$1"}}
	END
}

doctor_names() {
	{ gpuq doctor >doctor.out || true; } && grep -i "gpushare lists as unhealthy" doctor.out
}

test_expect_success 'AC-ALI-10: without the right doctor names it, and all cards are used' '
	cluster node s gpus=0 aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4 && listed 0,2 && start_kube_gpuqd && wait_for 60 node_frees s 4 && wait_for 60 doctor_names
'

test_expect_success 'AC-ALI-10: with it cards 0 and 2 are not' '
	kube apply -f "$test_source/etc/kubernetes/optional/gpushare.yaml" >/dev/null && stop_gpuqd && start_kube_gpuqd && wait_for 60 node_frees s 2 && ! doctor_names &&
	id=$(fake_job "gpu_memory: 10Gi\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && job_is "$id" pods.0.devices.0.index 1 && gpuq cancel "$id" && stop_gpuqd
'

test_done
