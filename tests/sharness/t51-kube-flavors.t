#!/bin/sh
test_description='real control plane: AC-DWS-4: what is reserved first, then one request; gangs in one flavor'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/provision.sh"

{
	printf "version: 1\nflavors: [{name: reservation}, {name: dws}]\nqueues: [{name: dws, flavors: [reservation, dws]}]\npools:\n"
	echo "- {name: res, flavor: reservation, selector: {cloud.google.com/gke-nodepool: res}}"
	pool dws dws 8 4
} >site.yaml

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/provisioning.yaml"

# one: a job of one device, without a word about flavors
one() {
	fake_job "queue: dws\ngpus: 1\ncpus: 1\ntime: 1h\n$(fate hang=true)"
}

# run_on NODE N: so many pods of gpuqd's are on it
run_on() {
	kube list "gpuq-jobs/pods?fieldSelector=spec.nodeName%3D$1" metadata.name >run_on.out
	[ "$(grep -c . run_on.out)" = "$2" ] || { echo "on $1: $(cat run_on.out)"; return 1; }
}

no_pool_nodes() {
	kube list nodes metadata.name >nodes.out && [ "$(cat nodes.out)" = res1 ] || { cat nodes.out; return 1; }
}

n_requests() {
	[ "$(requests | grep -c .)" = "$1" ] || { requests; return 1; }
}

test_expect_success 'nine reserved devices, a pool at zero' '
	printf "finished_pod_keep: 1s\n" >gpuqd.yaml && crd v1 && autoscaler v1 &&
	start_kube_gpuqd --config "$PWD/gpuqd.yaml" --site "$PWD/site.yaml" &&
	fakenode add res1 gpus=9 label=cloud.google.com/gke-nodepool=res && wait_for 60 node_frees res1 9
'

test_expect_success 'AC-DWS-4: of ten jobs nine run on what is reserved, and one request is made for the tenth' '
	becomes accept && for i in 1 2 3 4 5 6 7 8 9; do one || return 1; done >nine && wait_for 60 node_frees res1 0 && n_requests 0 &&
	tenth=$(one) && job_becomes "$tenth" PROVISIONING 60 && wait_for 60 job_is "$tenth" provisioning.condition Accepted &&
	n_requests 1 && n_of "$tenth" 1 && run_on res1 9 && for a in $(cat nine); do
		job_is "$a" state RUNNING && job_is "$a" flavor reservation && n_of "$a" 0 || return 1
	done
'

test_expect_success 'AC-DWS-4: a reserved device becomes free: the request is deleted, and the job starts there' '
	gpuq cancel "$(head -n 1 nine)" && job_becomes "$tenth" RUNNING 90 && job_is "$tenth" flavor reservation &&
	job_is "$tenth" pods.0.node res1 && wait_for 60 no_requests && n_of "$tenth" 1 && no_pool_nodes
'

test_expect_success 'AC-DWS-4: a node that comes too late is used by no job' '
	becomes late && late=$(one) && wait_for 60 job_is "$late" provisioning.state provisioned && gpuq cancel "$(sed -n 2p nine)" &&
	job_becomes "$late" RUNNING 90 && job_is "$late" pods.0.node res1 && wait_for 60 no_requests &&
	fakenode add late1 gpus=8 cpu=8 memory=64Gi label=cloud.google.com/gke-nodepool=dws && wait_for 60 node_is late1 leaving &&
	becomes nothing && more=$(one) && job_becomes "$more" PROVISIONING 60 && run_on late1 0 && gpuq cancel "$more" && fakenode delete late1 &&
	wait_for 60 no_requests && wait_for 60 no_pool_nodes
'

test_expect_success 'AC-DWS-4: a gang of ten is of one flavor: it is requested, although nine devices are free' '
	gpuq cancel --me && wait_for 90 node_frees res1 9 && becomes serve &&
	gang=$(fake_job "queue: dws\npods: 10\ngpus: 1\ncpus: 500m\ntime: 1h\n$(fate hang=true)") && job_becomes "$gang" RUNNING 120 &&
	job_is "$gang" flavor dws && n_of "$gang" 1 && grep -e "-$gang-ask.* count=2 " scaler/log && n_pods "$gang" 10 && run_on res1 0 &&
	gpuq cancel "$gang" && wait_for 90 no_requests && wait_for 90 no_pool_nodes && none_twice
'

test_expect_success 'nothing was overcommitted' '
	nothing_was_overcommitted
'

test_done
