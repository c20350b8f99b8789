#!/bin/sh
test_description='real control plane: drains without --force, kept pods, and a state restored from a backup'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --nodes 2

cat >site.yaml <<'END'
version: 1
qos:
- {name: fixed, preemptible: false}
queues:
- {name: default, qos: [normal, fixed], quota: 8}
- {name: kept, accounting_finalizer: true}
END

place_of() {
	job "$1" pods.0.node
}

test_expect_success 'pods have a controller, and autoscalers hear whether they may move them' '
	start_kube_gpuqd --site site.yaml && a=$(fake_job "$(fate run=600s)\ngpus: 1") &&
	f=$(fake_job "$(fate run=600s)\ngpus: 1\nqos: fixed") && job_becomes "$a" RUNNING && job_becomes "$f" RUNNING &&
	pods_of "$a" "metadata.ownerReferences.0.kind,metadata.ownerReferences.0.controller" >out &&
	says out "Namespace.true" && pods_of "$a" "metadata.annotations" >out && says out "safe-to-evict\": \"true\"" &&
	pods_of "$f" "metadata.annotations" >out && says out "safe-to-evict\": \"false\"" && gpuq cancel "$f"
'

test_expect_success 'finished pods are kept, with and without a finalizer' '
	b=$(fake_job "$(fate run=1s)\ngpus: 1\nqueue: kept") && job_becomes "$b" COMPLETED && n_pods "$b" 1 &&
	pods_of "$b" metadata.finalizers >out && says out accounting &&
	c=$(fake_job "$(fate run=1s)\ngpus: 1") && job_becomes "$c" COMPLETED && n_pods "$c" 1
'

test_expect_success 'a drain of both nodes needs no --force and is held up by none of them' '
	kube drain node1 --timeout 40 && kube drain node2 --timeout 40 && n_pods "$b" 0 && n_pods "$c" 0 &&
	job_becomes "$a" PENDING && job_is "$b" state COMPLETED
'

test_expect_success 'the evicted job runs again where there is room' '
	kube patch nodes/node1 "{\"spec\": {\"unschedulable\": null}}" >/dev/null && job_becomes "$a" RUNNING 60 &&
	job_is "$a" pods.0.node node1
'

test_expect_success 'nothing was over-committed' '
	nothing_was_overcommitted
'

test_expect_success 'a job is cancelled and slow to end; etcd is put back to before; it ends all the same' '
	d=$(fake_job "$(fate run=600s slow-exit=20s)\ngpus: 1\ngrace: 2s") && job_becomes "$d" RUNNING && cluster remember &&
	wait_for 60 cluster_is_fresh && gpuq cancel "$d" && wait_for 20 eval "pods_of $d metadata.deletionTimestamp | grep -q 20" &&
	cluster rewind && test -z "$(pods_of "$d" metadata.deletionTimestamp)" && n_pods "$d" 1 &&
	job_becomes "$d" CANCELLED 120 && n_pods "$d" 0 && job_is "$a" state RUNNING
'

stop_gpuqd
test_done
