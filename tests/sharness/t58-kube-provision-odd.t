#!/bin/sh
test_description='real control plane: flavors that were waited for, riders, gangs that no pool can get, figures of what is requested'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/provision.sh"

{
	pool big big 8 2 && pool spare big 8 2 && pool few few 1 4 &&
		pool odd odd 2 2 | sed 's,memory: 64Gi,memory: 64Gi\, resources: {rdma/hca: 4},'
} | site

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/provisioning.yaml"

n_requests() {
	[ "$(requests | grep -c .)" = "$1" ] || { requests; return 1; }
}

test_expect_success 'pools at zero are well' '
	printf "finished_pod_keep: 1s\n" >gpuqd.yaml && crd v1 && autoscaler v1 && becomes accept &&
	start_kube_gpuqd --config "$PWD/gpuqd.yaml" --site "$PWD/site.yaml" && { gpuq doctor >doctor.out || :; } &&
	says doctor.out "ok .*nodes .*there are no nodes now; pools that can grow get them" && test_must_fail grep "^bad" doctor.out
'

test_expect_success 'a job that rides on the request of another is told so, beside a second request of the pool, and is counted' '
	a=$(grow "gpus: 3\ntime: 1h" --hold) && b=$(grow "gpus: 5\ntime: 1h" --hold) && c=$(grow "gpus: 8\ntime: 1h" --hold) &&
	gpuq release "$a" "$b" "$c" && wait_for 60 job_is "$c" provisioning.state accepted && wait_for 60 job_is "$b" provisioning.owner "$a" &&
	job_is "$b" provisioning.request "$(job "$a" provisioning.request)" && n_requests 2 && gpuq why "$b" >out &&
	says out "^Request .*-$a-ask.*, of job $a$" && test "$(gpuq status --json | json jobs.PROVISIONING)" = 3 &&
	test "$(gpuq status --json | json jobs.PENDING)" = 0 && gpuq status >out && says out "^Jobs +3 PROVISIONING$" &&
	gpuq cancel "$a" "$b" "$c" && wait_for 60 no_requests
'

test_expect_success 'so is an array, of the requests of its elements' '
	a=$(grow_on few "gpus: 1\ntime: 1h\narray: 0-3%%2") && wait_for 60 n_requests 2 &&
	wait_for 60 eval "gpuq why $a | grep -q \"^Request .*-$a-0-ask\"" && gpuq cancel "$a" && wait_for 60 no_requests
'

test_expect_success 'a gang of more nodes than any one pool may have is not satisfiable, and nothing is requested' '
	a=$(grow "pods: 3\ngpus: 8\ntime: 1h") && wait_for 60 job_is "$a" reason Unsatisfiable && job_is "$a" reasons.0.have 2 &&
	job_is "$a" reasons.0.need 3 && n_requests 0 && gpuq cancel "$a"
'

test_expect_success 'machines of pools count when a job is submitted' '
	a=$(grow_on odd "gpus: 1\ntime: 1h\nresources: {rdma/hca: 4}" 2>err) && test_must_fail grep "no node can hold" err &&
	b=$(grow_on odd "gpus: 1\ntime: 1h\nresources: {rdma/hca: 5}" 2>err) && says err "5 rdma/hca requested, 4 on the largest node" &&
	gpuq cancel "$a" "$b" && wait_for 60 no_requests
'

test_expect_success 'a flavor whose wait is over is not waited for: the next one is requested, and its request withdrawn' '
	a=$(grow_on "[{name: big, for: 4s}, few]" "gpus: 1\ntime: 1h") && wait_for 60 job_is "$a" provisioning.pool big &&
	wait_for 60 job_is "$a" provisioning.pool few && wait_for 60 n_requests 1 && n_of "$a" 2 && gpuq cancel "$a" && wait_for 60 no_requests
'

test_expect_success 'unless the cloud has said that its nodes are on their way' '
	becomes late && a=$(grow_on "[{name: big, for: 4s}, few]" "gpus: 1\ntime: 1h") && wait_for 60 job_is "$a" provisioning.state provisioned &&
	wait_for 60 eval "test \$(gpuq why $a | grep -c FlavorWait) = 0" && sleep 3 && job_is "$a" provisioning.pool big && n_of "$a" 1 &&
	gpuq cancel "$a" && wait_for 60 no_requests
'

test_expect_success 'nor is one that was refused as often as the job says' '
	becomes fail few=accept && a=$(grow_on "[{name: big, refusals: 1}, few]" "gpus: 1\ntime: 1h") &&
	wait_for 60 job_is "$a" provisioning.pool few && test "$(grep -c -e "-$a-ask.*what=fail" scaler/log)" = 1 &&
	becomes accept && gpuq cancel "$a" && wait_for 60 no_requests && none_twice
'

test_expect_success 'no node of a pool that others have reserved is requested, until it is not theirs any more' '
	gpuq reserve whole --start now -t 1h --pool few -u daemon && a=$(grow_on few "gpus: 1\ntime: 1h") &&
	wait_for 60 job_is "$a" reason Reservation && job_is "$a" reasons.0.object whole && n_requests 0 &&
	gpuq reserve --delete whole && wait_for 60 job_is "$a" provisioning.pool few && n_requests 1 && gpuq cancel "$a" && wait_for 60 no_requests
'

test_expect_success 'nothing was overcommitted' '
	nothing_was_overcommitted
'

test_done
