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

# first_gone POD OTHER: the apiserver deleted that pod before it made the other one, since $before
first_gone() {
	kube raw GET "gpuq-jobs/pods?watch=1&timeoutSeconds=1&resourceVersion=$before" 2>/dev/null | /usr/bin/python3 -c '
import json, sys
seen = [(e["type"], e["object"]["metadata"]["name"]) for e in map(json.loads, sys.stdin)]
sys.exit(0 if seen.index(("DELETED", sys.argv[1])) < seen.index(("ADDED", sys.argv[2])) else "%s came before %s was gone" % (sys.argv[2], sys.argv[1]))' "$@"
}

test_expect_success 'AC-POD-3: the pod of a job that takes the devices of another is created after the pod of that one is gone' '
	echo "{version: 1, qos: [{name: high, priority: 10}], queues: [{name: default, namespace: gpuq-jobs, start: bind, qos: [normal, high]}]}" >site.yaml && gpuq apply -f site.yaml &&
	a=$(fake_job "gpus: 2\nnodes: [node1]\n$(fate hang=true slow-exit=4s)") && job_becomes "$a" RUNNING 120 && before=$(kube get gpuq-jobs/pods metadata.resourceVersion) && gone=$(pods_of "$a") &&
	b=$(fake_job "gpus: 2\nnodes: [node1]\nqos: high\n$(fate hang=true)") && wait_for 60 job_is "$a" state COMPLETING && n_pods "$b" 0 && job_becomes "$b" RUNNING 120 &&
	job_is "$a" state PENDING && first_gone "$gone" "$(pods_of "$b")" && gpuq cancel "$a" "$b" && wait_for 120 no_pods
'

test_expect_success 'AC-POD-1: a pod that the kubelet refuses: another attempt on another node, at nobody'\''s expense; the node is left alone by that job' '
	cluster reject node1 3>&- 4>&- 5>&- && kube patch nodes/node3 "{\"spec\": {\"unschedulable\": true}}" >/dev/null && full=$(fake_job "gpus: 2\nnodes: [node2]\n$(fate run=3s)") && job_becomes "$full" RUNNING 120 &&
	id=$(fake_job "gpus: 1\n$(fate run=100ms)") && job_becomes "$id" COMPLETED 120 && job_is "$id" pods.0.node node2 && job_is "$id" evictions "[]" && test "$(job "$id" attempt)" -ge 1 &&
	says gpuqd.log "node.refused_job.*node=node1" && ! grep -q "node.refused_pod" gpuqd.log && ! node_is node1 suspect && cluster unreject node1 3>&- 4>&- 5>&-
'

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
