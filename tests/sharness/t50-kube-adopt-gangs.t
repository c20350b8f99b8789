#!/bin/sh
test_description='real control plane: pods of one PodGroup, PyTorchJob, JobSet or RayCluster with schedulerName: gpuq start together or not at all'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

# crd GROUP VERSION PLURAL KIND: a kind whose objects may say anything; there is no controller of it
crd() {
	cat <<-END
	apiVersion: apiextensions.k8s.io/v1
	kind: CustomResourceDefinition
	metadata: {name: $3.$1, annotations: {api-approved.kubernetes.io: "unapproved, for the tests of gpuq"}}
	spec:
	  group: $1
	  scope: Namespaced
	  names: {kind: $4, plural: $3, singular: $(echo "$4" | tr "[:upper:]" "[:lower:]"), listKind: ${4}List}
	  versions:
	  - {name: $2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
	---
	END
}

{
	printf 'apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n---\n'
	crd scheduling.x-k8s.io v1alpha1 podgroups PodGroup
	crd kubeflow.org v1 pytorchjobs PyTorchJob
	crd jobset.x-k8s.io v1alpha2 jobsets JobSet
	crd ray.io v1 rayclusters RayCluster
	cat "$test_source/etc/kubernetes/optional/adopt.yaml"
} >"$TMPDIR/rights.yaml"
cluster_for_gpuqd --with "$TMPDIR/rights.yaml" --nodes 2 --gpus 2

# member NAME LABELS [GPUS [ANNOTATIONS]]: a pod that hangs
member() {
	kube create team/pods - >/dev/null <<-END
	{apiVersion: v1, kind: Pod, metadata: {name: $1, namespace: team, labels: {$2}, annotations: {gpuq.test/hang: "true", ${4-}}},
	 spec: {schedulerName: gpuq, restartPolicy: Never, containers: [{name: main, image: "$kube_image", command: [sleep, "1"], resources: {limits: {nvidia.com/gpu: "${3-1}"}}}]}}
	END
}

# object PATH: what a kind's operator reads, as on stdin
object() {
	kube create "/apis/$1" - >/dev/null
}

# jobs_of ORIGIN [STATE]: ids
jobs_of() {
	gpuq queue --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    job = json.loads(line)
    o = job.get("origin") or {}
    if "%s/%s" % (o.get("kind"), o.get("name")) == sys.argv[1] and (len(sys.argv) < 3 or job["state"] == sys.argv[2]):
        print(job["id"])' "$1" ${2+"$2"}
}

# one_job ORIGIN STATE PODS
one_job() {
	one_job_id=$(jobs_of "$1" "$2") && test "$(echo "$one_job_id" | grep -c .)" = 1 && job_is "$one_job_id" pod_count "$3"
}

said() {
	kube list team/events reason,message >events.out && grep "$1" events.out
}

no_pods() {
	test -z "$(kube list team/pods metadata.name)"
}

test_expect_success 'the namespace has a queue' '
	printf "version: 1\nqueues: [{name: default, namespace: gpuq-jobs}, {name: team, namespace: team}]\nadopt: {namespaces: [{name: team, queue: team}]}\n" >site.yaml &&
	start_kube_gpuqd && wait_for 60 node_is node2 idle && gpuq apply -f site.yaml
'

test_expect_success 'a PodGroup: nothing starts before its minimum is there, then all of it, as one job' '
	echo "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 3}}" | object scheduling.x-k8s.io/v1alpha1/namespaces/team/podgroups &&
	member g0 "scheduling.x-k8s.io/pod-group: g" && member g1 "scheduling.x-k8s.io/pod-group: g" && wait_for 60 said "GangIncomplete.*2 of the 3 pods of PodGroup/g" && test -z "$(jobs_of PodGroup/g)" &&
	member g2 "scheduling.x-k8s.io/pod-group: g" && wait_for 120 one_job PodGroup/g RUNNING 3 && test "$(kube list team/pods spec.nodeName | grep -c node)" = 3
'

test_expect_success 'a larger one waits as a whole: no pod of it has a node' '
	echo "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: h}, spec: {minMember: 2}}" | object scheduling.x-k8s.io/v1alpha1/namespaces/team/podgroups &&
	member h0 "scheduling.x-k8s.io/pod-group: h" && member h1 "scheduling.x-k8s.io/pod-group: h" && wait_for 60 one_job PodGroup/h PENDING 2 &&
	test "$(kube list team/pods spec.nodeName | grep -c node)" = 3
'

test_expect_success 'a pod of the running gang is deleted: the others are told to leave, and the gang that waits starts' '
	kube delete team/pods/g1 && wait_for 120 one_job PodGroup/h RUNNING 2 && wait_for 60 eval "test -z \"\$(jobs_of PodGroup/g)\"" &&
	wait_for 60 eval "test \"\$(kube list team/pods metadata.name | sort | tr \"\\n\" \" \")\" = \"h0 h1 \"" && gpuq cancel "$(jobs_of PodGroup/h)" && wait_for 60 no_pods
'

test_expect_success 'the owner of a gang that waits makes a pod anew: the gang is queued anew, as a whole' '
	member big "" 2 && member big2 "" 2 && member h0 "scheduling.x-k8s.io/pod-group: h" && member h1 "scheduling.x-k8s.io/pod-group: h" && wait_for 60 one_job PodGroup/h PENDING 2 && old=$(jobs_of PodGroup/h) &&
	kube delete team/pods/h1 && wait_for 60 job_is "$old" state CANCELLED && member h1 "scheduling.x-k8s.io/pod-group: h" && wait_for 60 one_job PodGroup/h PENDING 2 &&
	test "$(jobs_of PodGroup/h)" != "$old" && gpuq cancel "$(jobs_of PodGroup/h)" && wait_for 60 eval "test -z \"\$(jobs_of PodGroup/h)\"" &&
	wait_for 60 eval "test \"\$(kube list team/pods metadata.name | grep -c h)\" = 0" && kube delete team/pods/big && kube delete team/pods/big2 && wait_for 60 no_pods
'

test_expect_success 'a third pod of a PodGroup of two never starts before these, runs beside them, and leaves with them' '
	echo "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: k}, spec: {minMember: 2}}" | object scheduling.x-k8s.io/v1alpha1/namespaces/team/podgroups && label="scheduling.x-k8s.io/pod-group: k" &&
	member one "" && member two "" 2 && wait_for 60 one_job Pod/one RUNNING 1 && wait_for 60 one_job Pod/two RUNNING 1 && member k0 "$label" && member k1 "$label" && wait_for 60 one_job PodGroup/k PENDING 2 && core=$(jobs_of PodGroup/k) &&
	member k2 "$label" && wait_for 60 said "GangWaits.*beyond the 2 pods of PodGroup/k" && test "$(jobs_of PodGroup/k)" = "$core" && kube delete team/pods/two &&
	wait_for 120 job_is "$core" state RUNNING && wait_for 60 eval "test \"\$(jobs_of PodGroup/k RUNNING | grep -c .)\" = 2" && third=$(jobs_of PodGroup/k | grep -vx "$core") && job_is "$third" pods.0.name k2 &&
	kube delete team/pods/k0 && wait_for 60 job_is "$third" state CANCELLED && kube delete team/pods/one && wait_for 60 no_pods
'

test_expect_success 'a PyTorchJob: as many as its replicas, as gpuq submit reads them; different roles are groups' '
	pod="{spec: {containers: [{name: pytorch, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}}" &&
	echo "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: mnist}, spec: {pytorchReplicaSpecs: {Master: {replicas: 1, template: $pod}, Worker: {replicas: 2, template: $pod}}}}" | object kubeflow.org/v1/namespaces/team/pytorchjobs &&
	labels="training.kubeflow.org/job-name: mnist, training.kubeflow.org/operator-name: pytorchjob-controller" && member m0 "$labels" 2 && member w0 "$labels" && wait_for 60 said "2 of the 3 pods of PyTorchJob/mnist" &&
	member w1 "$labels" && wait_for 120 one_job PyTorchJob/mnist RUNNING 3 && job_is "$(jobs_of PyTorchJob/mnist)" gpus 4 && gpuq cancel "$(jobs_of PyTorchJob/mnist)" && wait_for 60 no_pods
'

test_expect_success 'a JobSet and a RayCluster: likewise' '
	job="{spec: {parallelism: 2, completions: 2, template: {spec: {restartPolicy: Never, containers: [{name: a, image: i}]}}}}" &&
	echo "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: js}, spec: {replicatedJobs: [{name: w, replicas: 1, template: $job}]}}" | object jobset.x-k8s.io/v1alpha2/namespaces/team/jobsets &&
	echo "{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: ray}, spec: {workerGroupSpecs: [{groupName: w, replicas: 1}]}}" | object ray.io/v1/namespaces/team/rayclusters &&
	for i in 0 1; do member "js$i" "jobset.sigs.k8s.io/jobset-name: js" && member "ray$i" "ray.io/cluster: ray" || return 1; done &&
	wait_for 120 one_job JobSet/js RUNNING 2 && wait_for 60 one_job RayCluster/ray RUNNING 2 && gpuq cancel "$(jobs_of JobSet/js)" "$(jobs_of RayCluster/ray)" && wait_for 60 no_pods
'

test_expect_success 'a gang whose object is not there waits, and its owner is told' '
	member lone "scheduling.x-k8s.io/pod-group: nix" && wait_for 60 said "PodGroup nix, which says how many pods start together, does not exist" && test -z "$(jobs_of PodGroup/nix)" && kube delete team/pods/lone && wait_for 60 no_pods
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
