#!/bin/sh
test_description='real control plane: max_nodes of a pool is lowered while nodes of it are requested'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/provision.sh"

pool big big 8 4 | site
cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/provisioning.yaml"

# most N: max_nodes is that from now on
most() {
	pool big big 8 "$1" | site && gpuq apply -f site.yaml
}

# accepted: one more job, whose request was accepted, as $accepted
accepted() {
	accepted=$(grow "gpus: 8\ntime: 1h") && wait_for 30 job_is "$accepted" provisioning.state accepted
}

test_expect_success 'one job runs on a requested node; requests of three others are accepted' '
	printf "finished_pod_keep: 1s\n" >gpuqd.yaml && crd v1 && autoscaler v1 &&
	start_kube_gpuqd --config "$PWD/gpuqd.yaml" --site "$PWD/site.yaml" && becomes serve && runs=$(grow "gpus: 8\ntime: 1h") &&
	job_becomes "$runs" RUNNING 60 && becomes accept && accepted && j1=$accepted && accepted && j2=$accepted && accepted && j3=$accepted &&
	gpuq pools -h -o NODES,ASKED,REQUESTS big >out && says out "^ *1 +3 +3"
'

test_expect_success 'with a maximum of 3 the newest request is taken back, and its job told' '
	most 3 && wait_for 30 eval "gpuq pools -h -o NODES,ASKED,REQUESTS big >out; says out \"^ *1 +2 +2\"" &&
	job_becomes "$j3" PENDING && job_is "$j1" provisioning.state accepted && job_is "$j2" provisioning.state accepted &&
	gpuq events "$j3" >out && says out "max_nodes of its pool is 3" && n_of "$j1" 1 && n_of "$j2" 1 && n_of "$j3" 1 &&
	wait_for 30 eval "test \$(requests | grep -c .) = 3"
'

test_expect_success 'with 1 all that the cloud gave nothing for; the node that is there and its job stay' '
	most 1 && wait_for 30 eval "test \$(requests | grep -c .) = 1" && gpuq pools -h -o NODES,ASKED,REQUESTS big >out &&
	says out "^ *1 +0 +0" && job_is "$runs" state RUNNING && job_is "$runs" attempt 0 && n_of "$runs" 1 && sleep 3 && n_of "$j1" 1 && n_of "$j2" 1
'

test_expect_success 'raised again, as many are requested as may be' '
	becomes serve && most 3 && job_becomes "$j1" RUNNING 60 && job_becomes "$j2" RUNNING 60 && job_is "$j3" state PENDING &&
	n_of "$j1" 2 && n_of "$j2" 2 && n_of "$j3" 1 && gpuq cancel --me && wait_for 60 no_requests && wait_for 60 no_nodes && none_twice
'

test_expect_success 'nothing was overcommitted' '
	nothing_was_overcommitted
'

test_done
