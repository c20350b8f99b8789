#!/bin/sh
test_description='real control plane: pods of Jobs, Deployments, StatefulSets and bare ones, with schedulerName: gpuq, are queued and bound'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

{
	printf 'apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n---\n'
	cat "$test_source/etc/kubernetes/optional/adopt.yaml"
} >"$TMPDIR/rights.yaml"
cluster_for_gpuqd --with "$TMPDIR/rights.yaml" --nodes 2 --gpus 2

# pod_spec RESTARTPOLICY: of one GPU
pod_spec() {
	echo "{schedulerName: gpuq, restartPolicy: $1, containers: [{name: main, image: '$kube_image', command: [sleep, '1'], resources: {limits: {nvidia.com/gpu: 1}}}]}"
}

# owner KIND APIVERSION NAME SPEC [FATE [RESTARTPOLICY]]: of pods with the label app=NAME; SPEC are members beside the template
owner() {
	kube apply -f - <<-END
	apiVersion: $2
	kind: $1
	metadata: {name: $3, namespace: team}
	spec: {$4, template: {metadata: {labels: {app: $3, gpuq.io/queue: team}, annotations: {${5-}}}, spec: $(pod_spec "${6-Always}")}}
	END
}

bound_pods() {
	kube list "team/pods?labelSelector=app=$1" metadata.uid,spec.nodeName | awk 'NF == 2 && $2 != "null"' | sort
}

test_expect_success 'the namespace has a queue' '
	printf "version: 1\nqueues: [{name: default, namespace: gpuq-jobs}, {name: team, namespace: team}]\nadopt: {namespaces: [{name: team, queue: team, user: ann}]}\n" >site.yaml &&
	start_kube_gpuqd && wait_for 60 node_is node2 idle && gpuq apply -f site.yaml
'

test_expect_success 'a pod without an owner: queued, bound once, COMPLETED; the pod stays' '
	echo "{apiVersion: v1, kind: Pod, metadata: {name: alone, namespace: team, labels: {app: alone}}, spec: $(pod_spec Never)}" | kube apply -f - &&
	kube wait team/pods/alone status.phase=Succeeded --timeout 120 && wait_for 60 n_jobs 1 Pod/alone history COMPLETED && id=$(jobs_of Pod/alone history) && job_is "$id" user ann &&
	job_is "$id" pods.0.node "$(kube get team/pods/alone spec.nodeName)" && kube get team/pods/alone metadata.uid >uid && grep "$(job "$id" origin.uid)" uid
'

test_expect_success 'a batch/v1 Job of kubectl ends well: a job for each of its pods' '
	owner Job batch/v1 train "completions: 2, parallelism: 2" "" Never && kube wait team/jobs/train status.succeeded=2 --timeout 120 &&
	wait_for 60 n_jobs 2 Job/train history COMPLETED && n_jobs 0 Job/train
'

test_expect_success 'a Deployment: its pods run without an end, those beyond the devices wait, and one that is cancelled comes anew' '
	owner Deployment apps/v1 web "selector: {matchLabels: {app: web}}, replicas: 5" "gpuq.test/hang: \"true\"" && wait_for 120 n_jobs 4 Deployment/web queue RUNNING && n_jobs 5 Deployment/web && n_jobs 1 Deployment/web queue PENDING &&
	first=$(jobs_of Deployment/web queue RUNNING | head -n 1) && job_is "$first" time_limit_s null && gpuq queue >list && grep "Deployment/web" list &&
	gpuq cancel "$first" && wait_for 60 job_is "$first" state CANCELLED && wait_for 120 n_jobs 4 Deployment/web queue RUNNING && wait_for 60 n_jobs 5 Deployment/web &&
	test "$(kube get team/deployments/web spec.replicas)" = 5
'

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

test_expect_success 'killed and started again: the same pods, the same jobs, on the same nodes' '
	bound_pods web >before && jobs_of Deployment/web | sort >jobs.before && kill_gpuqd && start_kube_gpuqd && wait_for 60 n_jobs 4 Deployment/web queue RUNNING &&
	bound_pods web | diff before - && jobs_of Deployment/web | sort | diff jobs.before -
'

test_expect_success 'the owner takes pods away: their jobs are cancelled, the others run' '
	kube patch team/deployments/web "{\"spec\": {\"replicas\": 1}}" >/dev/null && wait_for 120 n_jobs 1 Deployment/web && wait_for 60 n_jobs 1 Deployment/web queue RUNNING &&
	kube delete team/deployments/web && wait_for 120 n_jobs 0 Deployment/web
'

test_expect_success 'a StatefulSet: likewise' '
	owner StatefulSet apps/v1 db "selector: {matchLabels: {app: db}}, serviceName: db, podManagementPolicy: Parallel, replicas: 2" "gpuq.test/hang: \"true\"" && wait_for 120 n_jobs 2 StatefulSet/db queue RUNNING && kube delete team/statefulsets/db && wait_for 120 n_jobs 0 StatefulSet/db
'

test_expect_success 'without the right, the pod stays and waits; doctor names the right' '
	kube delete /apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings/gpuqd-adopt && { gpuq doctor >out || :; } &&
	grep "adopt of the site: .* may not .*create pods/binding in team" out
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
