#!/bin/sh
test_description='real control plane: requests that fail four times, time limits of a class, gangs on nodes that differ, requests of others'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/provision.sh"

{
	pool big big 8 4 && pool spare spare 8 4 && echo "- {name: there, flavor: big, selector: {there: 'yes'}}"
} | site
sed -i 's/queues: .*/queues: [{name: dws}, {name: tight, limit: {big: 8}}]/' site.yaml

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/provisioning.yaml"

test_expect_success 'the kind, an autoscaler, a daemon' '
	printf "finished_pod_keep: 1s\n" >gpuqd.yaml && crd v1 && autoscaler v1 &&
	start_kube_gpuqd --config "$PWD/gpuqd.yaml" --site "$PWD/site.yaml"
'

test_expect_success 'AC-DWS-7: a time limit beyond seven days is refused with the number; seven days are asked for, with a warning' '
	becomes accept && test_must_fail grow_on spare "gpus: 8\ntime: 7d1h" >out 2>&1 && says out "604800" &&
	a=$(grow_on spare "gpus: 8\ntime: 7d" 2>warning) && says warning "boot" && wait_for 60 job_is "$a" provisioning.condition Accepted &&
	grep "run=604800 what=accept" scaler/log && gpuq cancel "$a" && wait_for 60 no_requests
'

test_expect_success 'requests of others, with every condition that there is, are left alone, and nothing starts for them' '
	kube apply -f - <<-END &&
	apiVersion: v1
	kind: PodTemplate
	metadata: {name: theirs, namespace: gpuq-jobs}
	template: {spec: {nodeSelector: {a: theirs}, containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 8}}}]}}
	---
	apiVersion: autoscaling.x-k8s.io/v1
	kind: ProvisioningRequest
	metadata: {name: theirs, namespace: gpuq-jobs}
	spec: {provisioningClassName: theirs, podSets: [{count: 1, podTemplateRef: {name: theirs}}]}
	END
	becomes serve theirs=revoke && a=$(grow "gpus: 8\ntime: 1h") && job_becomes "$a" RUNNING 60 && n_of "$a" 1 && n_pods "$a" 1 &&
	pods_of "$a" spec.nodeName >out && says out "^big-" && requests >out && says out "^theirs$" && gpuq cancel "$a" &&
	wait_for 60 eval "test \"\$(requests)\" = theirs" && kube delete "$group/namespaces/gpuq-jobs/provisioningrequests/theirs" &&
	kube delete gpuq-jobs/podtemplates/theirs && wait_for 60 no_requests && wait_for 60 no_nodes
'

test_expect_success 'a gang on nodes of which each lacks devices: no pod of it starts there, and its next flavor is asked' '
	becomes serve big=half && a=$(grow_on "[big, spare]" "pods: 2\ngpus: 8\ntime: 1h") && job_becomes "$a" RUNNING 90 && job_is "$a" flavor spare &&
	gpuq events "$a" >out && says out "came with 4 devices, not 8" && n_pods "$a" 2 && pods_of "$a" spec.nodeName >out &&
	test_must_fail grep "^big-" out && ends "$a"
'

pool_fails() {
	gpuq pools >pools.out && grep -Eq "^big +big +failing" pools.out
}

test_expect_success 'AC-DWS-2: a request fails four times, with pauses in which other jobs have the flavor; then its pool is left alone' '
	sleep 4 && becomes fail &&
	a=$(fake_job "queue: tight\nflavor: big\ngpus: 8\ntime: 1h\n$(fate hang=true)") && wait_for 30 job_is "$a" provisioning.state paused &&
	fakenode add n1 gpus=8 label=there=yes &&
	job_becomes "$a" RUNNING 60 && n_pods "$a" 1 && wait_for 60 no_requests && gpuq cancel "$a" && wait_for 60 eval "test \$(node_state n1) = idle" &&
	b=$(fake_job "queue: tight\nflavor: big\ngpus: 8\ntime: 1h\n$(fate hang=true)") && job_becomes "$b" RUNNING 60 &&
	c=$(grow "gpus: 8\ntime: 1h") && wait_for 60 n_of "$c" 4 &&
	for attempt in 1 2 3 4; do grep -q "gpuq-.*-$c-ask[0-9]*-$attempt " scaler/log || return 1; done &&
	wait_for 60 pool_fails && gpuq cancel "$b" "$c"
'

test_expect_success 'nothing was overcommitted' '
	nothing_was_overcommitted
'

test_done
