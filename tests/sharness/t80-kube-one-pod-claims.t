#!/bin/sh
test_description='real control plane: a claim of mode ReadWriteOncePod is used by one pod at a time, and what waits for it says so'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --nodes 1 --gpus 4

# claimed NAME MODE: a claim that is bound, to a volume that any node reaches
claimed() {
	kube apply -f - >/dev/null <<-END &&
		apiVersion: v1
		kind: PersistentVolume
		metadata: {name: pv-$1}
		spec: {accessModes: [$2], capacity: {storage: 1Gi}, storageClassName: "", persistentVolumeReclaimPolicy: Retain,
		  claimRef: {namespace: gpuq-jobs, name: $1}, hostPath: {path: /nowhere}}
		---
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1, namespace: gpuq-jobs}
		spec: {accessModes: [$2], storageClassName: "", volumeName: pv-$1, resources: {requests: {storage: 1Gi}}}
	END
		kube wait "gpuq-jobs/persistentvolumeclaims/$1" status.phase=Bound --timeout 60
}

# mounting CLAIM [LINES]: a job with one GPU that mounts it
mounting() {
	fake_job "gpus: 1\nvolumes: [{claim: $1, path: /data}]\n${2:-$(fate hang=true)}"
}

# running N: so many of the jobs run
running() {
	test "$(gpuq queue -h -t R -o JOBID | grep -c .)" = "$1"
}

test_expect_success 'one node, a claim for one pod and one for one node' '
	start_kube_gpuqd && claimed single ReadWriteOncePod && claimed common ReadWriteOnce && wait_for 60 node_is node1 idle
'

test_expect_success 'the second job waits without devices, and names the claim and the pod that has it' '
	first=$(mounting single) && job_becomes "$first" RUNNING 120 && second=$(mounting single) && wait_for 60 job_is "$second" reason VolumeInUse && job_is "$second" state PENDING &&
	pod=$(pods_of "$first" metadata.name) && job_is "$second" reasons.0.object "single, by pod $pod" && job_is "$second" reasons.0.who user && gpuq why "$second" >why &&
	says why "volume claim is in use by another pod" && says why "$pod" && n_pods "$second" 0 && test "$(free_gpus)" = 3
'

test_expect_success 'it is in the way of no other, and one that any pod of a node may use is used by several' '
	a=$(mounting common) && b=$(mounting common) && job_becomes "$a" RUNNING 120 && job_becomes "$b" RUNNING 120 && gpuq cancel "$a" "$b"
'

test_expect_success 'it starts when the pod has ended' '
	gpuq cancel "$first" && job_becomes "$second" RUNNING 120 && gpuq cancel "$second" && wait_for 60 eval "test \$(free_gpus) = 4"
'

# one_by_one ID: its elements did not run at the same time
one_by_one() {
	gpuq history --json -j "$1" | /usr/bin/python3 -c '
import json, sys
runs = sorted((j["start_time"], j["end_time"]) for j in map(json.loads, sys.stdin) if j["start_time"])
assert len(runs) == 3 and all(a[1] <= b[0] for a, b in zip(runs, runs[1:])), runs'
}

test_expect_success 'of an array one element at a time' '
	id=$(mounting single "array: 0-2\n$(fate run=1s)") && gpuq wait "$id" && one_by_one "$id"
'

test_expect_success 'of jobs that are submitted at once one' '
	one=$(mounting single) && other=$(mounting single) && wait_for 120 running 1 && wait_for 60 eval "gpuq queue -h -t PD -o REASON | grep VolumeInUse" && running 1 && gpuq cancel "$one" "$other" && wait_for 60 eval "test \$(free_gpus) = 4"
'

test_expect_success 'a gang cannot use it: it is warned of, and waits' '
	printf "image: $kube_image\ncommand: [a]\ngpus: 1\npods: 2\nvolumes: [{claim: single, path: /data}]\n" | gpuq submit --parsable - >id 2>err && says err "volume claim single is ReadWriteOncePod: one pod at a time can be using it, and the job has 2" &&
	gang=$(cat id) && wait_for 60 job_is "$gang" reason VolumeInUse && job_is "$gang" reasons.0.have 1 && job_is "$gang" reasons.0.need 2 && job_is "$gang" reasons.0.object single && test "$(free_gpus)" = 4 && gpuq cancel "$gang"
'

test_expect_success 'a new gpuqd knows which is in use' '
	first=$(mounting single) && job_becomes "$first" RUNNING 120 && kill_gpuqd && start_kube_gpuqd && second=$(mounting single) && wait_for 60 job_is "$second" reason VolumeInUse && n_pods "$second" 0 && gpuq cancel "$first" && job_becomes "$second" RUNNING 120
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
