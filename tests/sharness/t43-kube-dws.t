#!/bin/sh
test_description='real control plane: queues of Kueue with a check for DWS, imported; jobs on pools at zero, one that is never served'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/provision.sh"

other_clocks
cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/provisioning.yaml"

# As its authors publish them: one flavor without labels, quotas without an end, one check.
cat >dws-queues.yaml <<'END'
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: default-flavor}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: AdmissionCheck
metadata: {name: dws-prov}
spec:
  controllerName: kueue.x-k8s.io/provisioning-request
  parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: dws-config}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ProvisioningRequestConfig
metadata: {name: dws-config}
spec:
  provisioningClassName: queued-provisioning.gke.io
  managedResources: [nvidia.com/gpu]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: dws-cluster-queue}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: default-flavor
      resources:
      - {name: cpu, nominalQuota: 10000}
      - {name: memory, nominalQuota: 10000Gi}
      - {name: nvidia.com/gpu, nominalQuota: 10000}
  admissionChecks: [dws-prov]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {namespace: default, name: dws-local-queue}
spec: {clusterQueue: dws-cluster-queue}
END

# The node pools, as they were created: none of them has a node.
cat >shapes.yaml <<'END'
pools:
- {name: dws-t4, flavor: t4, selector: {cloud.google.com/gke-nodepool: dws-t4-nodepool},
   provisioning: {max_nodes: 1, machine: {gpus: 1, cpus: 2, memory: 7Gi}}}
- {name: dws-a100, flavor: a100, selector: {cloud.google.com/gke-nodepool: dws-a100-nodepool},
   provisioning: {max_nodes: 1, machine: {gpus: 1, cpus: 12, memory: 85Gi}}}
- {name: dws-h100, flavor: h100, selector: {cloud.google.com/gke-nodepool: dws-h100-nodepool},
   provisioning: {max_nodes: 1, timeout: 73h, retries: 0, machine: {gpus: 1, cpus: 26, memory: 234Gi}}}
END

# sample NAME POOL: the manifest that runs on a node of it
sample() {
	cat <<-END
		apiVersion: batch/v1
		kind: Job
		metadata:
		  name: $1
		  namespace: default
		  labels:
		    kueue.x-k8s.io/queue-name: dws-local-queue
		spec:
		  parallelism: 1
		  completions: 1
		  suspend: true
		  template:
		    spec:
		      nodeSelector:
		        cloud.google.com/gke-nodepool: $2
		      tolerations:
		      - key: "nvidia.com/gpu"
		        operator: "Exists"
		        effect: "NoSchedule"
		      containers:
		      - name: dummy-job
		        image: gcr.io/k8s-staging-perf-tests/sleep:v0.0.3
		        args: ["120s"]
		        resources:
		          requests:
		            cpu: "100m"
		            memory: "100Mi"
		            nvidia.com/gpu: 1
		          limits:
		            cpu: "100m"
		            memory: "100Mi"
		            nvidia.com/gpu: 1
		      restartPolicy: Never
	END
}

# later COMMAND...: by the clock of the daemon
later() {
	LD_PRELOAD=$clock_shim gpuq "$@"
}

# nothing_left: neither requests nor templates nor nodes
nothing_left() {
	test -z "$(requests)" && test -z "$(kube list default/podtemplates metadata.name)" && no_nodes
}

# summary WORDS: gpuq nodes -s has a line of them
summary() {
	gpuq nodes -s >nodes.out && grep -Eq "$1" nodes.out
}

test_expect_success 'the queues are imported, with the shapes of the pools: two kinds of quotas are left out, in one line' '
	gpuq import kueue --pools shapes.yaml dws-queues.yaml >site.yaml 2>notes && grep "cpu, memory: quotas count devices alone" notes &&
	test $(wc -l <notes) = 2 && says site.yaml "kind: request" && says site.yaml "quota: 10000"
'

test_expect_success 'quotas of 10000 on pools at zero are no fault, and these are shown' '
	for f in base/20-rbac.yaml optional/provisioning.yaml; do
		sed "s/namespace: gpuq-jobs/namespace: default/" "$test_source/etc/kubernetes/$f" >rights.yaml && kube apply -f rights.yaml || return 1
	done && crd v1 && autoscaler v1 && becomes serve dws-h100-nodepool=accept && clock_to 0 && printf "finished_pod_keep: 1s\n" >gpuqd.yaml &&
	shimmed --site "$PWD/site.yaml" && gpuq apply -f site.yaml --dry-run >out 2>&1 && ! grep -i "add up" out && ! grep overcommitted gpuqd.log &&
	summary "dws-t4 0 of 1 +planned" && gpuq status >out && says out "dws-a100 0 of 1"
'

test_expect_success 'the T4 job: request, node, run; then neither is left' '
	t4=$(sample sample-job dws-t4-nodepool | submit -) && pods_namespace=default &&
	job_becomes "$t4" COMPLETED 90 && grep "count=1 class=queued-provisioning.gke.io template=yes run=604800 what=serve" scaler/log &&
	gpuq events "$t4" >out && says out ask.made && wait_for 60 nothing_left && gpuq status "$t4" >out && says out dws-t4-nodepool
'

test_expect_success 'the A100 job likewise' '
	a100=$(sample sample-job-a100 dws-a100-nodepool | submit -) && job_becomes "$a100" COMPLETED 90 && n_of "$a100" 1 &&
	wait_for 60 nothing_left && gpuq status "$a100" >out && says out dws-a100-nodepool && n_seen 2 && none_twice
'

test_expect_success 'an H100 job is not served: its request is shown with its age and condition, and so after a restart' '
	h100=$(sample sample-job-h100 dws-h100-nodepool | submit -) && job_becomes "$h100" PROVISIONING 60 &&
	wait_for 60 job_is "$h100" provisioning.condition Accepted && request=$(job "$h100" provisioning.request) &&
	wait_for 30 summary "dws-h100 0 of 1, asked 1 +provisioning" && gpuq status --json >out && test "$(json provisioning.gpus <out)" = 1 &&
	kill_gpuqd && clock_to 86400 && shimmed && wait_for 30 job_is "$h100" state PROVISIONING && later status "$h100" >out &&
	says out "1 node of pool dws-h100, flavor h100, accepted for 1-00:" && says out "Condition +Accepted" && says out "the request was accepted" &&
	says out "$request"
'

test_expect_success 'and after another, on the third day; no pod was made, and no second request' '
	kill_gpuqd && clock_to 259200 && shimmed && wait_for 30 job_is "$h100" state PROVISIONING && later why "$h100" >out &&
	says out "accepted for 3-00:" && test "$(requests)" = "$request" && n_of "$h100" 1 && n_pods "$h100" 0
'

test_expect_success 'until its timeout: the request is removed, and the job waits with the reason' '
	kill_gpuqd && clock_to 266400 && shimmed && wait_for 60 job_is "$h100" reason ProvisioningFailed && wait_for 60 nothing_left &&
	gpuq pools dws-h100 --json >out && says out "\"state\": ?\"failing\"" && n_of "$h100" 1 && n_pods "$h100" 0 && gpuq cancel "$h100"
'

test_expect_success 'nothing was overcommitted' '
	nothing_was_overcommitted
'

test_done
