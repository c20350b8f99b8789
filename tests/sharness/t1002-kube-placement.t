#!/bin/sh
test_description='on a real apiserver: where jobs go, and that nothing is given twice'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube-shared.sh"

test_expect_success 'start' '
	make_namespace &&
	make_nodes n1 gpus=8 label=disk=ssd && make_nodes n2 gpus=8 label=disk=hdd &&
	make_nodes n3 gpus=8 taint=team=red:NoSchedule &&
	cluster watch && start_kube_gpuqd &&
	wait_for 30 eval "test \$(gpuq nodes --json | json name | grep -c \"$test_namespace\") = 3"
'

test_expect_success 'node affinity binds' '
	pod_fields="\"affinity\": {\"nodeAffinity\": {\"requiredDuringSchedulingIgnoredDuringExecution\": {\"nodeSelectorTerms\":
		[{\"matchExpressions\": [{\"key\": \"disk\", \"operator\": \"NotIn\", \"values\": [\"ssd\"]},
		 {\"key\": \"disk\", \"operator\": \"Exists\"}]}]}}}," &&
	id=$(pod_job far 1) && pod_fields= && exits 0 gpuq wait "$id" && job_is "$id" pods.0.node "$test_namespace-n2"
'

test_expect_success 'a taint keeps jobs away, a toleration lets them in' '
	pod_fields="\"nodeSelector\": {\"kubernetes.io/hostname\": \"$test_namespace-n3\"}," &&
	out=$(pod_job no 1) && wait_for 20 job_is "$out" reason Unsatisfiable &&
	pod_fields="$pod_fields \"tolerations\": [{\"key\": \"team\", \"operator\": \"Equal\", \"value\": \"red\"}]," &&
	id=$(pod_job yes 1) && pod_fields= && exits 0 gpuq wait "$id" && job_is "$id" pods.0.node "$test_namespace-n3" &&
	job_is "$out" state PENDING && gpuq cancel "$out"
'

test_expect_success 'whole nodes stay free: small jobs share one' '
	a=$(pod_job a 2 gpuq.test/hang=true) && b=$(pod_job b 2 gpuq.test/hang=true) &&
	job_becomes "$a" RUNNING && job_becomes "$b" RUNNING &&
	test "$(job "$a" pods.0.node)" = "$(job "$b" pods.0.node)" && gpuq cancel "$a" "$b" &&
	job_becomes "$a" CANCELLED && job_becomes "$b" CANCELLED
'

foreign() {
	kube_quiet create "$test_namespace/pods" - <<-END
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1", "annotations": {"gpuq.test/hang": "true"}},
		 "spec": {"nodeName": "$test_namespace-$2", "restartPolicy": "Never", "containers": [{"name": "c",
		  "image": "docker.io/local/busybox:1", "resources": {"limits": {"nvidia.com/gpu": "$3"}}}]}}
	END
}

test_expect_success 'what others use is counted' '
	foreign other1 n1 6 && foreign other2 n2 8 && wait_for 20 eval "
		test \$(gpuq nodes --json | grep $test_namespace-n1 | json free_gpus) = 2 &&
		test \$(gpuq nodes --json | grep $test_namespace-n2 | json free_gpus) = 0" &&
	id=$(pod_job waits 4) && wait_for 20 job_is "$id" state PENDING && wait_for 20 job_is "$id" reason Resources &&
	kube delete "$test_namespace/pods/other2" && exits 0 gpuq wait "$id" && job_is "$id" pods.0.node "$test_namespace-n2" &&
	kube delete "$test_namespace/pods/other1"
'

test_expect_success 'more work than room: all of it is done' '
	for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
		pod_job "w$n" $((n % 4 + 1)) gpuq.test/run=200ms && pod_job "g$n" 8 gpuq.test/run=100ms || return 1
	done >ids &&
	gpuq wait $(cat ids) && for id in $(cat ids); do job_is "$id" state COMPLETED && job_is "$id" attempt 0 || return 1; done
'

test_expect_success 'no node and no device was ever given twice' '
	cluster unwatch
'

test_expect_success 'the quota of a namespace makes jobs wait, not fail' '
	kube_quiet create "$test_namespace/resourcequotas" - <<-\END &&
	{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
	 "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}
	END
	wait_for 20 kube wait "$test_namespace/resourcequotas/q" "status.hard.[requests.nvidia.com/gpu]=2" --timeout 15 &&
	one=$(pod_job one 2 gpuq.test/hang=true) && job_becomes "$one" RUNNING &&
	two=$(pod_job two 1 gpuq.test/run=0s) && wait_for 60 job_is "$two" reason NamespaceQuota &&
	gpuq cancel "$one" && exits 0 gpuq wait "$two"
'

test_expect_success 'end' '
	stop_gpuqd
'

test_done
