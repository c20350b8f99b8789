#!/bin/sh
test_description='real control plane: start: bind: pods are created without a node and bound, once, whenever gpuqd is killed'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

site() {
	cat >site.yaml <<-END
	version: 1
	queues: [{name: default, namespace: gpuq-jobs, start: $1}]
	END
	gpuq apply -f site.yaml
}

no_pods() {
	test -z "$(kube list gpuq-jobs/pods metadata.name)"
}

cluster_for_gpuqd --nodes 3 --gpus 2

test_expect_success 'a queue with start: bind' '
	printf "finished_pod_keep: 1s\n" >gpuqd.yaml && start_kube_gpuqd --config "$PWD/gpuqd.yaml" && wait_for 60 node_is node3 idle && site bind && test_must_fail site later 2>why && grep "site.yaml:2:.*start: expected direct or bind" why
'

test_expect_success 'a gang: each pod without a node at first, then bound to that of its placement' '
	id=$(fake_job "gpus: 1\npods: 3\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && n_pods "$id" 3 && job_is "$id" attempt 0 &&
	for i in 0 1 2; do pods_of "$id" spec.nodeName >node.out && grep -q "$(job "$id" pods.$i.node)" node.out || return 1; done &&
	gpuq cancel "$id" && wait_for 120 no_pods
'

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

# killed_at FAILPOINT: gpuqd dies at that step of a job; the next one ends it well, with one pod
killed_at() {
	stop_gpuqd && GPUQ_FAILPOINT="$1" && export GPUQ_FAILPOINT && start_kube_gpuqd --config "$PWD/gpuqd.yaml" && killed_id=$(fake_job "gpus: 1\n$(fate hang=true)") &&
		wait_for 60 gpuqd_is_dead && unset GPUQ_FAILPOINT && start_kube_gpuqd --config "$PWD/gpuqd.yaml" && job_becomes "$killed_id" RUNNING 120 &&
		n_pods "$killed_id" 1 && job_is "$killed_id" attempt 0 && test "$(pods_of "$killed_id" spec.nodeName)" = "$(job "$killed_id" pods.0.node)" &&
		gpuq cancel "$killed_id" && wait_for 120 no_pods
}

test_expect_success FAILPOINTS 'AC-POD-2: killed after the decision was stored' 'killed_at dispatch.create=kill'
test_expect_success FAILPOINTS 'AC-POD-2: killed after the pod was asked for' 'killed_at kube.post.answered=kill'
test_expect_success FAILPOINTS 'AC-POD-2: killed before the pod is bound' 'killed_at kube.bind=kill'
test_expect_success FAILPOINTS 'AC-POD-2: killed after it was bound' 'killed_at kube.bind.answered=kill'

test_expect_success 'without the right to bind its jobs wait, without devices, and doctor names the right' '
	kube get clusterroles/gpuqd-jobs >role.json &&
	/usr/bin/python3 -c "
import json
role = json.load(open(\"role.json\"))
role[\"rules\"] = [r for r in role[\"rules\"] if \"pods/binding\" not in r[\"resources\"]]
role[\"metadata\"] = {\"name\": \"gpuqd-jobs\"}
json.dump(role, open(\"less.json\", \"w\"))" && kube apply -f less.json && sleep 1 &&
	id=$(fake_job "gpus: 1\n$(fate hang=true)") && wait_for 60 job_is "$id" reason ClusterRefused && job_is "$id" reasons.0.object pods/binding &&
	wait_for 60 no_pods && { gpuq doctor >out || :; } && says out "start: bind: .* may not create pods/binding" && gpuq cancel "$id" &&
	site direct && id=$(fake_job "gpus: 1\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && gpuq cancel "$id" && wait_for 120 no_pods
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
