#!/bin/sh
test_description='real control plane: claims and volumes: nodes of bound ones, claims bound at their first pod, missing ones'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

# The controller manager binds claims to volumes as on any cluster. Nothing here provisions them, so the
# test plays the provisioner: it makes the volume for the node that is written to the claim.
cat >classes.yaml <<'END'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
provisioner: test.gpuq.io/none
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: now}
provisioner: test.gpuq.io/none
volumeBindingMode: Immediate
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: zoned}
provisioner: test.gpuq.io/none
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: kubernetes.io/hostname, values: [node2]}]}]
END

# free_volume NAME NODE SIZE: a local volume there, which no claim has
free_volume() {
	kube apply -f - <<-END
		apiVersion: v1
		kind: PersistentVolume
		metadata: {name: $1}
		spec:
		  accessModes: [ReadWriteOnce]
		  capacity: {storage: $3}
		  storageClassName: local
		  persistentVolumeReclaimPolicy: Retain
		  local: {path: /nowhere}
		  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [
		   {key: kubernetes.io/hostname, operator: In, values: [$2]}]}]}}
	END
}

# claim NAME CLASS: an unbound claim
claim() {
	kube apply -f - <<-END
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1, namespace: gpuq-jobs}
		spec: {accessModes: [ReadWriteOnce], storageClassName: $2, resources: {requests: {storage: 1Gi}}}
	END
}

# volume CLAIM CLASS NODE: a volume on that node, for that claim
volume() {
	kube apply -f - <<-END
		apiVersion: v1
		kind: PersistentVolume
		metadata: {name: pv-$1}
		spec:
		  accessModes: [ReadWriteOnce]
		  capacity: {storage: 1Gi}
		  storageClassName: $2
		  persistentVolumeReclaimPolicy: Retain
		  claimRef: {namespace: gpuq-jobs, name: $1}
		  hostPath: {path: /nowhere}
		  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [
		   {key: kubernetes.io/hostname, operator: In, values: [$3]}]}]}}
	END
}

# selected CLAIM: the node written to it
selected() {
	kube get "gpuq-jobs/persistentvolumeclaims/$1" metadata.annotations >notes.out &&
		/usr/bin/python3 -c '
import json, re, sys
m = re.search(r"volume.kubernetes.io/selected-node\W+([\w.-]+)", open("notes.out").read())
print(m.group(1) if m else "")'
}

is_selected() {
	selected_got=$(selected "$1") && [ -n "$selected_got" ]
}

bound() {
	kube wait "gpuq-jobs/persistentvolumeclaims/$1" status.phase=Bound --timeout 60
}

# mounting CLAIM [LINES]: a job with one GPU that mounts it
mounting() {
	fake_job "gpus: 1\nvolumes: [{claim: $1, path: /data}]\n${2:-$(fate hang=true)}"
}

no_pods() {
	test -z "$(kube list gpuq-jobs/pods metadata.name)"
}

cluster_for_gpuqd --nodes 3 --gpus 2

test_expect_success 'three nodes, two storage classes' '
	kube apply -f classes.yaml && printf "finished_pod_keep: 1s\n" >gpuqd.yaml &&
	start_kube_gpuqd --config "$PWD/gpuqd.yaml" && wait_for 60 node_is node3 idle
'

# ---- missing, unbound, bound ----

test_expect_success 'a claim that does not exist: the job waits and says which, without a pod and devices' '
	missing=$(mounting datasets) && wait_for 60 job_is "$missing" reason VolumeNotFound &&
	gpuq why "$missing" >why && says why "VolumeNotFound.*datasets" && n_pods "$missing" 0 && test "$(free_gpus)" = 6
'

test_expect_success 'an unbound claim that waits for no pod: so does the job' '
	claim datasets now && wait_for 60 job_is "$missing" reason VolumePending && n_pods "$missing" 0 && test "$(free_gpus)" = 6
'

test_expect_success 'bound: the job runs where the volume is' '
	volume datasets now node3 && bound datasets && job_becomes "$missing" RUNNING 120 && job_is "$missing" pods.0.node node3
'

test_expect_success 'the node is full: the next job waits although others are idle' '
	second=$(mounting datasets) && job_becomes "$second" RUNNING 120 && job_is "$second" pods.0.node node3 &&
	third=$(mounting datasets) && wait_for 60 eval "job_is $third state PENDING && test \$(job $third reason) != null" &&
	n_pods "$third" 0 && test "$(free_gpus)" = 4 && gpuq cancel "$missing" "$second" && job_becomes "$third" RUNNING 120 &&
	job_is "$third" pods.0.node node3 && gpuq cancel "$third" && wait_for 120 no_pods
'

test_expect_success 'a claim whose volume is lost: the job waits and says so' '
	kube delete persistentvolumes/pv-datasets && kube patch persistentvolumes/pv-datasets "{\"metadata\": {\"finalizers\": null}}" &&
	kube wait gpuq-jobs/persistentvolumeclaims/datasets status.phase=Lost --timeout 60 &&
	lost=$(mounting datasets) && wait_for 60 job_is "$lost" reason VolumeNotFound && n_pods "$lost" 0 && gpuq cancel "$lost"
'

# ---- bound at the first pod ----

test_expect_success 'WaitForFirstConsumer: the pod has no node, the claim gets it, and the pod once the claim is bound' '
	claim late1 late && id=$(mounting late1) && wait_for 60 is_selected late1 && n_pods "$id" 1 &&
	node=$(selected late1) && job_is "$id" pods.0.node "$node" && pods_of "$id" spec.nodeName >node.out && ! grep -q node node.out &&
	test "$(pods_of "$id" spec.schedulerName)" = gpuq && uid=$(pods_of "$id" metadata.uid) &&
	volume late1 late "$node" && bound late1 && job_becomes "$id" RUNNING 120 &&
	test "$(pods_of "$id" spec.nodeName)" = "$node" && test "$(pods_of "$id" metadata.uid)" = "$uid" && job_is "$id" attempt 0
'

test_expect_success 'the next job with that claim starts there at once, with its node set' '
	next=$(mounting late1) && job_becomes "$next" RUNNING 120 && job_is "$next" pods.0.node "$node" &&
	gpuq cancel "$id" "$next" && wait_for 120 no_pods
'

test_expect_success 'cancelled while it waits for its volume: the pod goes, the devices are free' '
	claim late2 late && id=$(mounting late2) && wait_for 60 is_selected late2 && n_pods "$id" 1 && test "$(free_gpus)" = 5 &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED 60 && wait_for 60 no_pods && wait_for 60 eval "test \$(free_gpus) = 6"
'

test_expect_success 'a job that waits for its volume names the claim; when that goes, the job is VolumeNotFound without devices' '
	claim late5 late && id=$(mounting late5) && wait_for 60 is_selected late5 && wait_for 60 eval "gpuq why $id >why.out; grep \"volume claim late5 is not bound yet\" why.out" &&
	kube delete gpuq-jobs/persistentvolumeclaims/late5 >/dev/null && wait_for 60 job_is "$id" reason VolumeNotFound && job_is "$id" state PENDING && wait_for 60 no_pods &&
	wait_for 60 eval "test \$(free_gpus) = 6" && gpuq cancel "$id"
'

test_expect_success 'its volume comes into being elsewhere: the job goes back and starts there, once' '
	claim late3 late && id=$(mounting late3) && wait_for 60 is_selected late3 && node=$(selected late3) &&
	if [ "$node" = node1 ]; then other=node2; else other=node1; fi &&
	volume late3 late $other && bound late3 && job_becomes "$id" RUNNING 120 && job_is "$id" pods.0.node $other &&
	n_pods "$id" 1 && job_is "$id" attempt 1 && gpuq cancel "$id" && wait_for 120 no_pods
'

test_expect_success 'the topologies of a class: its claims get nodes of them alone' '
	claim zoned1 zoned && id=$(mounting zoned1) && wait_for 60 is_selected zoned1 && test "$(selected zoned1)" = node2 &&
	gpuq cancel "$id" && wait_for 120 no_pods
'

# ---- local volumes: nothing makes them ----

volume_of() { kube get "gpuq-jobs/persistentvolumeclaims/$1" spec.volumeName; }

test_expect_success 'a local volume is waited for without a pod and devices' '
	claim local1 local && id=$(mounting local1) && wait_for 60 job_is "$id" reason VolumePending && n_pods "$id" 0 &&
	test "$(free_gpus)" = 6 && gpuq cancel "$id"
'

test_expect_success 'the job goes where one is that is large enough, and the claim gets the smallest of those' '
	free_volume tiny node1 500Mi && free_volume large node3 5Gi && free_volume fits node3 2Gi && sleep 1 &&
	id=$(mounting local1) && job_becomes "$id" RUNNING 120 && job_is "$id" pods.0.node node3 && test "$(volume_of local1)" = fits &&
	bound local1 && job_is "$id" attempt 0
'

test_expect_success 'two claims at once do not get the same volume, and the one without waits' '
	claim local2 local && claim local3 local && two=$(mounting local2) && three=$(mounting local3) &&
	wait_for 120 eval "job_is $two state RUNNING || job_is $three state RUNNING" &&
	{ wait_for 60 job_is "$two" reason VolumePending || wait_for 60 job_is "$three" reason VolumePending; } &&
	free_volume more node1 1Gi && job_becomes "$two" RUNNING 120 && job_becomes "$three" RUNNING 120 &&
	test "$(volume_of local2)" != "$(volume_of local3)" && gpuq cancel "$id" "$two" "$three" && wait_for 120 no_pods
'

# ---- killed at each step ----

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

# killed_at FAILPOINT CLAIM: gpuqd dies at that step of a job with an unbound claim; the next one ends it well
killed_at() {
	stop_gpuqd && claim "$2" late >/dev/null && GPUQ_FAILPOINT="$1" && export GPUQ_FAILPOINT && start_kube_gpuqd --config "$PWD/gpuqd.yaml" &&
		killed_id=$(mounting "$2") && { wait_for 60 eval "is_selected $2 || gpuqd_is_dead" || :; } &&
		if is_selected "$2"; then volume "$2" late "$(selected "$2")" >/dev/null; fi &&
		wait_for 60 gpuqd_is_dead && unset GPUQ_FAILPOINT && start_kube_gpuqd --config "$PWD/gpuqd.yaml" &&
		wait_for 60 is_selected "$2" && volume "$2" late "$(selected "$2")" >/dev/null &&
		job_becomes "$killed_id" RUNNING 120 && n_pods "$killed_id" 1 && job_is "$killed_id" attempt 0 &&
		test "$(pods_of "$killed_id" spec.nodeName)" = "$(selected "$2")" &&
		gpuq cancel "$killed_id" && wait_for 120 no_pods
}

test_expect_success FAILPOINTS 'killed after the pod was made' 'killed_at kube.post.answered=kill k1'
test_expect_success FAILPOINTS 'killed before the node is written to the claim' 'killed_at kube.bind=kill k2'
test_expect_success FAILPOINTS 'killed after it was written' 'killed_at kube.bind.answered=kill k3'
test_expect_success FAILPOINTS 'killed before the pod is bound' 'killed_at kube.bind:2=kill k4'
test_expect_success FAILPOINTS 'killed after it was bound' 'killed_at kube.bind.answered:2=kill k5'

# ---- rights ----

test_expect_success 'without the right to bind such a job waits, without devices, and doctor says why' '
	kube get clusterroles/gpuqd-jobs >role.json &&
	/usr/bin/python3 -c "
import json
role = json.load(open(\"role.json\"))
role[\"rules\"] = [r for r in role[\"rules\"] if \"persistentvolumeclaims\" not in r[\"resources\"]]
role[\"metadata\"] = {\"name\": \"gpuqd-jobs\"}
json.dump(role, open(\"less.json\", \"w\"))" && kube apply -f less.json && sleep 1 &&
	claim late4 late && id=$(mounting late4) && wait_for 60 job_is "$id" reason VolumePending && wait_for 60 no_pods &&
	plain=$(fake_job "gpus: 2\npods: 3\n$(fate run=1s)") && job_becomes "$plain" COMPLETED 120 &&
	{ gpuq doctor >out || :; } && says out "claims bound at their first pod: .* may not patch persistentvolumeclaims" &&
	test "$(grep -c kube.bind_off gpuqd.log)" = 1 && gpuq cancel "$id"
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
