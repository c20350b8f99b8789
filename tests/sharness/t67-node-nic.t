#!/bin/sh
test_description='a real node with a second device plugin: what is counted is what the kubelet admits, created or bound'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --no-kwok --real-node --real-gpus 4 --real-nics 2

# nic_job 'COMMANDS' ['LINES']: a job of these shell commands with a device and an adapter
nic_job() {
	nic_lines=$(printf 'gpus: 1\nresources: {example.com/nic: 1}')
	printf 'image: %s\ncommand: [/bin/sh, -c, "%s"]\n%s\n' "$kube_image" "$1" "${2:-$nic_lines}" >nic.yaml
	submit nic.yaml
}

# bare NAME: a pod of others on the node, of one adapter
bare() {
	kube create default/pods - >/dev/null <<-END
	{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1"}, "spec": {"nodeName": "real1", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
	 "containers": [{"name": "c", "image": "$kube_image", "imagePullPolicy": "Never", "command": ["/bin/sh", "-c", "sleep 600"], "resources": {"limits": {"example.com/nic": "1"}}}]}}
	END
}

nics_free() {
	nics_got=$(gpuq nodes --json | /usr/bin/python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["resources"]["example.com/nic"]["free"])')
	[ "$nics_got" = "$1" ] || { echo "$nics_got adapters are free, not $1"; return 1; }
}

test_expect_success 'the kubelet refuses the third pod of two adapters, whoever made it' '
	start_kube_gpuqd && wait_for 120 node_frees real1 4 && wait_for 60 nics_free 2 && for n in 1 2; do bare theirs-$n && kube wait default/pods/theirs-$n status.phase=Running --timeout 120 || return 1; done &&
	bare theirs-3 && kube wait default/pods/theirs-3 status.phase=Failed --timeout 120 && test "$(kube get default/pods/theirs-3 status.reason)" = UnexpectedAdmissionError &&
	kube get default/pods/theirs-3 status.message | grep "example.com/nic" && wait_for 60 nics_free 0
'

test_expect_success 'a job waits for the adapters that others have, and says so; one without adapters runs beside' '
	id=$(nic_job "echo \$NIC_VISIBLE_DEVICES on \$NVIDIA_VISIBLE_DEVICES") && wait_for 60 job_is "$id" reason Resources && job_is "$id" reasons.0.object example.com/nic && n_pods "$id" 0 &&
	plain=$(nic_job "exit 0" "gpus: 1") && job_becomes "$plain" COMPLETED 180 && job_is "$id" state PENDING
'

test_expect_success 'it runs when one is free, and sees the two devices that it asked for' '
	kube delete default/pods/theirs-1 --grace 0 && job_becomes "$id" COMPLETED 180 && job_is "$id" attempt 0 && gpuq logs "$id" >out && says out "^nic-[01] on gpu-[0-3]$" &&
	kube delete default/pods/theirs-2 --grace 0 && kube delete default/pods/theirs-3 --grace 0 && wait_for 60 nics_free 2
'

test_expect_success 'six jobs of one adapter at once: two at a time, none is refused' '
	for i in 1 2 3 4 5 6; do nic_job "sleep 1" || return 1; done >ids && for id in $(cat ids); do job_becomes "$id" COMPLETED 240 && job_is "$id" attempt 0 && job_is "$id" evictions "[]" || return 1; done
'

test_expect_success 'bound by gpuqd the kubelet admits them likewise' '
	echo "{version: 1, queues: [{name: default, namespace: gpuq-jobs, start: bind}]}" >site.yaml && gpuq apply -f site.yaml &&
	for i in 1 2 3 4; do nic_job "echo \$NIC_VISIBLE_DEVICES" || return 1; done >ids && for id in $(cat ids); do job_becomes "$id" COMPLETED 240 && job_is "$id" attempt 0 || return 1; done &&
	gpuq logs "$id" >out && says out "^nic-[01]$"
'

test_expect_success 'an adapter that falls ill is not given out' '
	echo 0 >"$TMPDIR/k/real/unhealthy-nics" && wait_for 120 nics_free 1 && both=$(nic_job "exit 0" "resources: {example.com/nic: 2}") && wait_for 60 job_is "$both" state PENDING &&
	one=$(nic_job "exit 0") && job_becomes "$one" COMPLETED 180 && job_is "$both" state PENDING && rm "$TMPDIR/k/real/unhealthy-nics" && job_becomes "$both" COMPLETED 240 && job_is "$both" attempt 0
'

test_expect_success 'nothing was over-committed but by the pod of others that the kubelet refused' '
	stop_gpuqd && { nothing_was_overcommitted >verdict || true; } && cat verdict && grep "^done:" verdict && grep "^VIOLATION" verdict >got &&
	echo "VIOLATION real1: example.com/nic: 3 asked by 3 pods, 2 there (default/theirs-3)" >want && test_cmp want got
'

test_done
