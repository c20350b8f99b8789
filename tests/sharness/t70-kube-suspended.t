#!/bin/sh
test_description='real control plane: suspended Jobs with a queue name of Kueue are started by gpuqd, each pod on its one node, and suspended again'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

{
	sed 's/^  namespace: team$/  namespace: default/' "$test_source/etc/kubernetes/optional/adopt.yaml"
	cat <<-END
	---
	apiVersion: apiextensions.k8s.io/v1
	kind: CustomResourceDefinition
	metadata: {name: workloads.kueue.x-k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, for the tests of gpuq"}}
	spec:
	  group: kueue.x-k8s.io
	  scope: Namespaced
	  names: {kind: Workload, plural: workloads, singular: workload, listKind: WorkloadList}
	  versions:
	  - {name: v1beta2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
	END
} >"$TMPDIR/rights.yaml"
cluster_for_gpuqd --with "$TMPDIR/rights.yaml"

# suspended NAME [SPEC [ANNOTATIONS [LABELS]]]: a suspended Job of one GPU that hangs; members of its spec, and of its template's
suspended() {
	suspended_fate=${3-'gpuq.test/hang: "true"'}
	kube apply -f - >/dev/null <<-END
	apiVersion: batch/v1
	kind: Job
	metadata: {name: $1, namespace: default, labels: {kueue.x-k8s.io/queue-name: somewhere}}
	spec: {suspend: true, ${2-} template: {metadata: {annotations: {$suspended_fate}}, spec: {restartPolicy: Never,
	  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [plain]}]}]}}},
	  containers: [{name: main, image: "$kube_image", command: [sleep, "1"], resources: {limits: {nvidia.com/gpu: "${gpus-1}"}}}]}}}
	END
}

# pods NAME [EXPR]: of a Job
pods() {
	kube list "default/pods?labelSelector=batch.kubernetes.io/job-name=$1" "${2:-metadata.name}"
}

# job_has NAME EXPR VALUE: of the Job in the cluster
job_has() {
	job_has_got=$(kube get "default/jobs/$1" "$2") && test "$job_has_got" = "$3"
}

said() {
	kube list default/events involvedObject.kind,reason,message >events.out && grep "$1" events.out
}

# template NAME FILE
template() {
	kube get "default/jobs/$1" spec.template >"$2"
}

# removed NAME...: Jobs, with their pods and jobs
removed() {
	for removed_one; do
		kube raw DELETE "/apis/batch/v1/namespaces/default/jobs/$removed_one?propagationPolicy=Background" >/dev/null 2>&1 &&
			wait_for 120 eval "test -z \"\$(pods $removed_one)\"" && wait_for 60 n_jobs 0 "Job/$removed_one" || return 1
	done
}

as_before() {
	template "$1" after && diff "$2" after && job_has "$1" spec.suspend true
}

test_expect_success 'a pool of the walk-through, and another node' '
	cluster node t4-1 gpus=2 label=cloud.google.com/gke-nodepool=dws-t4-nodepool taint=nvidia.com/gpu=present:NoSchedule && cluster node plain gpus=2 &&
	printf "version: 1\nqueues: [{name: default, namespace: gpuq-jobs, quota: 4}, {name: dws-local-queue, namespace: default, quota: 0}, {name: team, namespace: default, quota: 0}]\nadopt: {namespaces: [{name: default, queue: team, user: ann}]}\n" >site.yaml &&
	start_kube_gpuqd && wait_for 60 node_is t4-1 idle && wait_for 60 node_is plain idle && gpuq apply -f site.yaml
'

test_expect_success 'the sample Job as it is: queued by the name of its queue, started, COMPLETED on a node of its pool' '
	kube apply -f "$test_source/examples/seeds/dws-t4.yaml" && kube wait default/jobs/sample-job status.succeeded=1 --timeout 120 && wait_for 60 n_jobs 1 Job/sample-job history COMPLETED &&
	id=$(jobs_of Job/sample-job history) && job_is "$id" user ann && job_is "$id" queue dws-local-queue && job_is "$id" pods.0.node t4-1 && job_is "$id" pods.0.name "$(pods sample-job)" &&
	said "Job.*Queued.*it is job $id of queue dws-local-queue"
'

test_expect_success 'its pod had no choice: the affinity names the node, and no gate is left' '
	pods sample-job spec.affinity >affinity && grep "metadata.name.*t4-1" affinity && pods sample-job spec.schedulingGates >left && ! grep name left
'

test_expect_success 'while it waits it has no pods, and nothing of it is changed' '
	filler=$(fake_job "gpus: 2\n$(fate hang=true)" -w plain) && job_becomes "$filler" RUNNING && suspended train && template train before && wait_for 60 n_jobs 1 Job/train queue PENDING && said "Queued.*gpuqd has no queue somewhere" &&
	as_before train before && test -z "$(pods train)" && id=$(jobs_of Job/train) && job_is "$id" queue team && job_is "$id" gpus 1
'

test_expect_success 'then it starts; its own affinity stays beside that of its node' '
	gpuq cancel "$filler" && job_becomes "$id" RUNNING 120 && job_has train spec.suspend false && pods train spec.affinity >affinity && grep hostname affinity && grep "metadata.name" affinity
'

test_expect_success 'killed and started again: the same pod, the same job' '
	pods train metadata.uid >uid && kill_gpuqd && start_kube_gpuqd && wait_for 60 job_is "$id" state RUNNING && pods train metadata.uid | cmp - uid && n_jobs 1 Job/train
'

test_expect_success 'evicted by a job that is owed the devices: it is suspended again, as it was, and queued anew' '
	owed=$(fake_job "gpus: 2\n$(fate hang=true)" -w plain) && job_becomes "$owed" RUNNING 120 && job_is "$id" state PREEMPTED && wait_for 60 as_before train before && test -z "$(pods train)" &&
	wait_for 60 n_jobs 1 Job/train queue PENDING && again=$(jobs_of Job/train) && test "$again" != "$id" && gpuq cancel "$owed" && job_becomes "$again" RUNNING 120
'

test_expect_success 'cancelled while it runs: it is suspended as it was, and stays so until its mark is taken away' '
	gpuq cancel "$again" && wait_for 60 job_is "$again" state CANCELLED && wait_for 60 as_before train before && job_has train "metadata.annotations[gpuq.io/cancelled]" "$again" &&
	wait_for 60 eval "test -z \"\$(pods train)\"" && n_jobs 0 Job/train && kube patch default/jobs/train "{\"metadata\": {\"annotations\": {\"gpuq.io/cancelled\": null}}}" >/dev/null && wait_for 120 n_jobs 1 Job/train queue RUNNING && removed train
'

test_expect_success 'cancelled while it waits: likewise' '
	gpus=3 suspended wide && template wide before && wait_for 60 n_jobs 1 Job/wide queue PENDING && id=$(jobs_of Job/wide) && gpuq cancel "$id" && wait_for 60 job_is "$id" state CANCELLED && as_before wide before && removed wide
'

test_expect_success 'its template is changed while it waits: it is queued anew, as it is now' '
	gpus=3 suspended wide && wait_for 60 n_jobs 1 Job/wide queue PENDING && id=$(jobs_of Job/wide) && kube patch default/jobs/wide "{\"spec\": {\"template\": {\"spec\": {\"nodeSelector\": {\"no\": \"node\"}}}}}" >/dev/null &&
	wait_for 60 job_is "$id" state CANCELLED && job_is "$id" message "its Job was changed" && wait_for 60 n_jobs 1 Job/wide && test "$(jobs_of Job/wide)" != "$id" && removed wide
'

test_expect_success 'several pods at once: one job for each, one Job; a pod that fails comes anew' '
	suspended many "parallelism: 3, completions: 3, backoffLimit: 4," && wait_for 120 n_jobs 2 Job/many queue RUNNING && wait_for 60 n_jobs 3 Job/many && n_jobs 1 Job/many queue PENDING &&
	first=$(jobs_of Job/many queue RUNNING | head -n 1) && gpuq cancel "$first" && wait_for 60 job_is "$first" state CANCELLED && wait_for 120 n_jobs 2 Job/many queue RUNNING && wait_for 60 n_jobs 3 Job/many && job_has many spec.suspend false && removed many
'

test_expect_success 'one after the other, and one that ends badly: each is a job, the Job ends as it would' '
	suspended chain "parallelism: 1, completions: 2," "gpuq.test/run: 500ms" && kube wait default/jobs/chain status.succeeded=2 --timeout 120 && wait_for 60 n_jobs 2 Job/chain history COMPLETED &&
	suspended bad "backoffLimit: 1," "gpuq.test/exit-code: \"3\", gpuq.test/run: 500ms" && kube wait default/jobs/bad status.failed=2 --timeout 180 && wait_for 60 n_jobs 2 Job/bad history FAILED && removed chain bad
'

test_expect_success 'a Workload of Kueue holds it: gpuqd leaves it alone, and doctor says so' '
	suspended held && uid=$(kube get default/jobs/held metadata.uid) &&
	echo "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: job-held, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: held, uid: $uid}]}}" | kube create /apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads - >/dev/null &&
	wait_for 60 said "Job.*HeldByKueue.*Workload job-held of Kueue holds it" && n_jobs 0 Job/held && job_has held spec.suspend true && { gpuq doctor >out || :; } && grep "Workload of Kueue holds are left alone: default/held" out && removed held
'

test_expect_success 'what gpuqd cannot start stays as it is, and its owner is told' '
	suspended gated && kube patch default/jobs/gated "{\"spec\": {\"template\": {\"spec\": {\"schedulingGates\": [{\"name\": \"example.com/mine\"}]}}}}" >/dev/null && suspended own "manualSelector: true, selector: {matchLabels: {a: b}}," "gpuq.test/hang: \"true\"}, labels: {a: b" &&
	wait_for 60 said "NotQueued.*scheduling gate example.com/mine of others" && wait_for 60 said "NotQueued.*manualSelector" && wait_for 60 n_jobs 0 Job/gated && n_jobs 0 Job/own &&
	kube patch default/jobs/gated "{\"spec\": {\"template\": {\"spec\": {\"schedulingGates\": null}}}}" >/dev/null && wait_for 120 n_jobs 1 Job/gated queue RUNNING && removed gated own
'

test_expect_success 'completions without end are no more pods than run at once' '
	suspended endless "parallelism: 1, completions: 2147483647," "gpuq.test/run: 300ms" && wait_for 120 eval "test \$(jobs_of Job/endless history COMPLETED | grep -c .) -ge 2" && removed endless
'

test_expect_success 'started by another client while it waits: its job is cancelled, and its pod is of others' '
	gpus=3 suspended taken && wait_for 60 n_jobs 1 Job/taken queue PENDING && id=$(jobs_of Job/taken) && kube patch default/jobs/taken "{\"spec\": {\"suspend\": false}}" >/dev/null &&
	wait_for 60 job_is "$id" state CANCELLED && job_is "$id" message "its Job was started by another client" && removed taken
'

test_expect_success 'suspended by another client while it runs: its template is restored, and it is queued anew' '
	suspended twice && template twice before && wait_for 120 n_jobs 1 Job/twice queue RUNNING && id=$(jobs_of Job/twice) && filler=$(fake_job "gpus: 1\n$(fate hang=true)" -w plain) && job_becomes "$filler" RUNNING 120 &&
	kube patch default/jobs/twice "{\"spec\": {\"suspend\": true}}" >/dev/null && wait_for 60 job_is "$id" state CANCELLED && wait_for 120 n_jobs 1 Job/twice queue RUNNING && test "$(jobs_of Job/twice)" != "$id" && gpuq cancel "$filler" && removed twice
'

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

# tells NAME: what there is of a Job, for whoever looks into a failure; it fails
tells() {
	echo "--- $1:"
	for tells_list in queue history; do gpuq $tells_list --json | grep -F "\"$1\""; done
	kube get "default/jobs/$1" spec.suspend,metadata.annotations,status
	pods "$1" metadata.name,spec.affinity,spec.schedulingGates,status.phase
	tail -n 40 gpuqd.log
	return 1
}

# killed_at FAILPOINT NAME: gpuqd dies at that step of a start; the next one goes on, with one job
killed_at() {
	stop_gpuqd && GPUQ_FAILPOINT="$1=kill" && export GPUQ_FAILPOINT && start_kube_gpuqd && suspended "$2" && wait_for 60 gpuqd_is_dead && unset GPUQ_FAILPOINT &&
		start_kube_gpuqd && wait_for 120 n_jobs 1 "Job/$2" queue RUNNING && n_jobs 0 "Job/$2" history && test "$(pods "$2" | grep -c .)" = 1 && removed "$2" || tells "$2"
}

for step in adopt.submit dispatch.adopt kube.owner.start kube.owner.start.answered adopt.fill kube.gate kube.gate.answered kube.bind.answered; do
	test_expect_success FAILPOINTS "killed at $step: it is started once" "killed_at $step k-$(echo $step | tr -d .)"
done

# evicted_at FAILPOINT NAME: gpuqd dies at that step of an eviction; the next one ends it
evicted_at() {
	suspended "$2" && template "$2" before && wait_for 120 n_jobs 1 "Job/$2" queue RUNNING && evicted_id=$(jobs_of "Job/$2") && stop_gpuqd && GPUQ_FAILPOINT="$1=kill" && export GPUQ_FAILPOINT && start_kube_gpuqd &&
		{ gpuq cancel "$evicted_id" || :; } && wait_for 60 gpuqd_is_dead && unset GPUQ_FAILPOINT && start_kube_gpuqd && wait_for 60 job_is "$evicted_id" state CANCELLED && wait_for 60 as_before "$2" before &&
		wait_for 60 eval "test -z \"\$(pods $2)\"" && n_jobs 0 "Job/$2" && removed "$2" || tells "$2"
}

for step in dispatch.delete kube.owner.stop kube.owner.stop.answered kube.owner.restore kube.owner.restore.answered; do
	test_expect_success FAILPOINTS "killed at $step: it is suspended, as it was" "evicted_at $step e-$(echo $step | tr -d .)"
done

test_expect_success 'where admission policies keep devices for gpuqd, its Jobs start all the same; others are refused' '
	kube patch namespaces/default "{\"metadata\": {\"labels\": {\"gpuq.io/managed\": \"true\"}}}" >/dev/null && kube apply -f "$test_source/etc/kubernetes/optional/policies.yaml" >/dev/null &&
	refused_there() { ! kube create default/pods "$1" >kube.out 2>&1 && grep "$2" kube.out; } &&
	gpu="containers: [{name: main, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]" &&
	echo "{apiVersion: v1, kind: Pod, metadata: {name: stray}, spec: {schedulerName: none, $gpu}}" >stray.yaml && wait_for 60 refused_there stray.yaml "devices in this namespace are given by gpuqd" &&
	suspended governed && template governed before && wait_for 120 n_jobs 1 Job/governed queue RUNNING && id=$(jobs_of Job/governed) && job_is "$id" pods.0.node plain && gpuq cancel "$id" && wait_for 60 as_before governed before && removed governed
'

test_expect_success 'the gate that lets pods pass there is opened by gpuqd alone' '
	echo "{apiVersion: v1, kind: Pod, metadata: {name: gated, labels: {a: b}}, spec: {schedulerName: none, schedulingGates: [{name: gpuq.io/node}, {name: example.com/other}], $gpu}}" >gated.yaml && kube create default/pods gated.yaml >/dev/null &&
	open() { kube patch default/pods/gated "$1" >kube.out 2>&1; } && ! open "{\"spec\": {\"schedulingGates\": null}}" && grep "gate gpuq.io/node is opened by gpuqd" kube.out &&
	! open "{\"spec\": {\"schedulingGates\": [{\"name\": \"example.com/other\"}]}}" && open "{\"metadata\": {\"labels\": {\"a\": \"c\"}}}" && open "{\"spec\": {\"schedulingGates\": [{\"name\": \"gpuq.io/node\"}]}}" && kube delete default/pods/gated >/dev/null
'

test_expect_success 'without the right to change Jobs they wait, and doctor names it' '
	kube delete /apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/gpuqd-adopt && { gpuq doctor >out || :; } &&
	grep "adopt of the site, suspended Jobs: .* may not .*patch jobs in default" out && grep "adopt of the site, gangs: .* may not get podgroups .*in default" out
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
