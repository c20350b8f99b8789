#!/bin/sh
test_description='real control plane: requests for nodes and the clock: bookings that expire unseen, nodes that are taken away; v1beta1'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/provision.sh"

pool big big 8 4 | site

other_clocks

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/provisioning.yaml"

# The kind as its authors publish it, which serves v1beta1 alone; without the module, ours of that version.
published=k8s.io/autoscaler/cluster-autoscaler/apis@v0.0.0-20240627115740-d52e4b9665d7
published_crd() {
	published_dir=$(cd "$TMPDIR" && go mod download -json "$published" 2>/dev/null | json_key Dir) && [ -n "$published_dir" ] &&
		kube apply -f "$published_dir/config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml" &&
		kube wait /apis/apiextensions.k8s.io/v1/customresourcedefinitions/provisioningrequests.autoscaling.x-k8s.io \
			'status.conditions[type=Established].status=True' --timeout 60
}
json_key() {
	/usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

test_expect_success 'a daemon with a clock of its own, the kind in v1beta1 as it is published' '
	printf "finished_pod_keep: 1s\n" >gpuqd.yaml && clock_to 0 && { published_crd || crd v1beta1; } && autoscaler v1beta1 &&
	shimmed --site "$PWD/site.yaml" && group=/apis/autoscaling.x-k8s.io/v1beta1
'

test_expect_success 'v1beta1 alone: a job gets its node, and nothing stays' '
	becomes serve && a=$(grow "gpus: 8\ntime: 1h") && job_becomes "$a" RUNNING 60 && n_of "$a" 1 && ends "$a"
'

test_expect_success 'AC-DWS-3: the daemon is away for 11 minutes across Provisioned: no pod, another attempt' '
	becomes accept && a=$(grow "gpus: 8\ntime: 1h") && wait_for 30 job_is "$a" provisioning.state accepted && kill_gpuqd &&
	then_becomes expire && clock_to 660 && shimmed && wait_for 60 job_is "$a" provisioning.attempt 2 && n_pods "$a" 0 &&
	grep "ask.failed.*attempt=1 why=.BookingExpired" gpuqd.log && wait_for 30 n_of "$a" 2 && then_becomes serve && job_becomes "$a" RUNNING 60 && n_pods "$a" 1 &&
	n_of "$a" 2 && ends "$a"
'

test_expect_success 'AC-DWS-3: so where the apiserver is away' '
	becomes accept && a=$(grow "gpus: 8\ntime: 1h") && wait_for 30 job_is "$a" provisioning.state accepted && cluster stop-apiserver &&
	wait_for 60 cluster_is_stale && echo expire >scaler/then && cluster start-apiserver && wait_for 90 cluster_is_fresh &&
	wait_for 60 job_is "$a" provisioning.attempt 2 && n_pods "$a" 0 && wait_for 30 n_of "$a" 2 && then_becomes serve && job_becomes "$a" RUNNING 60 && ends "$a"
'

test_expect_success 'AC-DWS-6: an attempt is told before its node is taken away, and is requeued if it had more time' '
	becomes serve && a=$(grow "gpus: 8\ntime: 1h\ncheckpoint: {signal: USR1, grace: 2m}") && job_becomes "$a" RUNNING 60 &&
	gpuq update "$a" time=6h && kill_gpuqd && clock_to $((660 + 4200 - 240)) && shimmed && sleep 3 && job_is "$a" state RUNNING &&
	job_is "$a" attempt 0 && kill_gpuqd && clock_to $((660 + 4200 - 100)) && shimmed && wait_for 60 job_is "$a" attempt 1 && gpuq events "$a" >out && says out "node_ends|taken away" &&
	wait_for 60 n_of "$a" 2 && job_becomes "$a" RUNNING 60 && ends "$a"
'

# Its request is for 720 s, of which the node takes 300 to come.
test_expect_success 'AC-DWS-6: a node that boots longer than the time limit of its job is used, and no other one requested' '
	becomes late && a=$(grow "gpus: 8\ntime: 2m") && wait_for 60 job_is "$a" provisioning.state provisioned && kill_gpuqd &&
	clock_to $((660 + 4200 + 300)) && shimmed && then_becomes serve && job_becomes "$a" RUNNING 60 && n_of "$a" 1 && ends "$a"
'

test_expect_success 'nothing was overcommitted' '
	nothing_was_overcommitted
'

test_done
