#!/bin/sh
test_description='real control plane: nodes that are requested: pools at zero, ProvisioningRequests, failures, restarts'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/provision.sh"

{
	pool dws-t4 t4 1 && pool dws-a100 a100 1 && pool big big 8 4
} | site

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/provisioning.yaml"

# As the manifest of the seed has it, with its node selector.
sample() {
	cat <<-END
		apiVersion: batch/v1
		kind: Job
		metadata:
		  generateName: sample-
		  labels: {kueue.x-k8s.io/queue-name: dws}
		spec:
		  parallelism: 1
		  completions: 1
		  suspend: true
		  template:
		    metadata: {annotations: {gpuq.test/run: "${2-2s}"}}
		    spec:
		      nodeSelector: {cloud.google.com/gke-nodepool: $1}
		      tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
		      containers:
		      - name: main
		        image: $kube_image
		        command: [sleep, "1"]
		        resources: {requests: {cpu: 100m, memory: 100Mi}, limits: {nvidia.com/gpu: 1}}
		      restartPolicy: Never
	END
}

test_expect_success 'without the kind in the cluster a job waits, and doctor says what is missing' '
	printf "finished_pod_keep: 1s\n" >gpuqd.yaml && start_kube_gpuqd --config "$PWD/gpuqd.yaml" --site "$PWD/site.yaml" &&
	t4=$(sample dws-t4 | submit -) && wait_for 30 eval "test \"\$(job $t4 reason)\" != null" && job_is "$t4" state PENDING &&
	grep "serves no ProvisioningRequest" gpuqd.log
'

test_expect_success 'the kind comes: T4 and A100 pools at zero, each job gets its node, runs there, and both go' '
	crd v1 && autoscaler v1 && becomes serve && a100=$(sample dws-a100 | submit -) &&
	job_becomes "$t4" COMPLETED 90 && job_becomes "$a100" COMPLETED 60 && n_seen 2 &&
	grep "count=1 class=queued-provisioning.gke.io template=yes" scaler/log &&
	wait_for 60 no_requests && wait_for 60 no_nodes
'

test_expect_success 'a gang gets its nodes at once, in one request; status and why tell what it waits for' '
	becomes accept && gang=$(grow "pods: 3\ngpus: 8" --time 2h) && job_becomes "$gang" PROVISIONING 60 &&
	wait_for 30 job_is "$gang" provisioning.condition Accepted && job_is "$gang" provisioning.nodes 3 && gpuq status "$gang" >out &&
	says out "3 nodes of pool big, flavor big, accepted" && says out "gpuq-.*-ask.*attempt 1" &&
	gpuq why "$gang" >out && says out "Condition.*Accepted" && gpuq queue -t PV -h -o JOBID >out && grep -qw "$gang" out &&
	grep "count=3 .*run=7800 what=accept" scaler/log && gpuq events "$gang" >out && says out ask.made
'

test_expect_success 'held: the request is taken back; released: another one' '
	gpuq hold "$gang" && wait_for 30 no_requests && becomes serve && gpuq release "$gang" && job_becomes "$gang" RUNNING 90 &&
	pods_of "$gang" "metadata.annotations" >notes.out && test "$(grep -c consume-provisioning-request notes.out)" = 3 &&
	grep -q provisioning-class-name.*queued-provisioning notes.out && test "$(requests)" != "" &&
	gpuq cancel "$gang" && wait_for 60 no_requests && wait_for 60 no_nodes
'

test_expect_success 'cancelled before it is served, and deleted by others: nothing stays, and no request is made twice' '
	becomes accept && a=$(grow "gpus: 8") && wait_for 30 job_is "$a" provisioning.state accepted &&
	first=$(job "$a" provisioning.request) && kube delete "$group/namespaces/gpuq-jobs/provisioningrequests/$first" &&
	wait_for 30 job_is "$a" provisioning.attempt 2 && wait_for 30 job_is "$a" provisioning.state accepted &&
	gpuq cancel "$a" && wait_for 30 no_requests && test "$(sort scaler/seen | uniq -d)" = ""
'

test_expect_success 'it fails four times, with pauses, then its pool is left alone' '
	becomes fail && a=$(grow "gpus: 8") && wait_for 60 grep "pool.closed.*pool=big" gpuqd.log && wait_for 30 no_requests &&
	test "$(grep -c "gpuq-.*-$a-ask.*what=fail" scaler/log)" = 4 && job_is "$a" state PENDING && gpuq cancel "$a"
'

test_done
