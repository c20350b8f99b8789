#!/bin/sh
test_description='tolerations of a pool: pods on its nodes get them, and need none of their own'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# site [LINES]: with one pool, and these keys more
site() {
	printf "version: 1\nqueues: [{name: default}]\npools:\n- name: p\n  selector: {team: ml}\n$1\n" >site.yaml
}
pool_tolerates="  tolerations: [{key: dedicated, operator: Equal, value: ml, effect: NoSchedule}, {key: drain-soon, operator: Exists}]"

# tolerations JOB: of its pod, in the cluster
tolerations() {
	api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$1" | json items.0.spec.tolerations
}

test_expect_success 'a node with taints is used by no job that does not tolerate them' '
	site "" && start_fake --nodes 1 --gpus 2 && offers node-0000 "\"nvidia.com/gpu\": \"2\"" "\"team\": \"ml\"" &&
	api PATCH /nodes/node-0000 "{\"spec\": {\"taints\": [{\"key\": \"dedicated\", \"value\": \"ml\", \"effect\": \"NoSchedule\"}]}}" >/dev/null &&
	start_fake_gpuqd --site "$PWD/site.yaml" && wait_for 60 node_is node-0000 pool p &&
	a=$(fake_job hang=true --gpus 1) && wait_for 60 job_is "$a" reason Unsatisfiable && gpuq why "$a" >out && says out dedicated
'

test_expect_success 'the pool tolerates them: the job starts, and its pod has what it needs' '
	site "$pool_tolerates" && gpuq apply -f site.yaml && job_becomes "$a" RUNNING 60 && tolerations "$a" >out &&
	says out "dedicated" && says out "drain-soon" && job_is "$a" pods.0.node node-0000
'

test_expect_success 'another value, and another effect, are not tolerated' '
	for taint in "\"key\": \"dedicated\", \"value\": \"web\", \"effect\": \"NoSchedule\"" "\"key\": \"dedicated\", \"value\": \"ml\", \"effect\": \"NoExecute\""; do
		api PATCH /nodes/node-0000 "{\"spec\": {\"taints\": [{$taint}]}}" >/dev/null && b=$(fake_job hang=true --gpus 1) &&
		wait_for 60 job_is "$b" reason Unsatisfiable && gpuq cancel "$b" || return 1
	done &&
	api PATCH /nodes/node-0000 "{\"spec\": {\"taints\": [{\"key\": \"drain-soon\", \"value\": \"x\", \"effect\": \"NoSchedule\"}]}}" >/dev/null &&
	b=$(fake_job hang=true --gpus 1) && job_becomes "$b" RUNNING 60
'

test_expect_success 'exported as it was given; what is wrong is refused' '
	gpuq export >exported.yaml && says exported.yaml "drain-soon" && gpuq apply -f exported.yaml --dry-run >out && says out "[Nn]othing" &&
	site "  tolerations: [{key: a, operator: Exist}]" && exits 1 gpuq apply -f site.yaml && grep "site.yaml:6:.*tolerations" err
'

test_expect_success 'all jobs end' all_gone

no_harm_was_done
test_done
