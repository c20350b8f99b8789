#!/bin/sh
test_description='real control plane: a job whose claim has its volume on a node that is not there says which claim'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --nodes 2 --gpus 2

test_expect_success 'a claim that is bound to a volume of a node that has gone' '
	start_kube_gpuqd && wait_for 60 node_is node2 idle && kube apply -f - <<-END &&
		apiVersion: v1
		kind: PersistentVolume
		metadata: {name: pv-data}
		spec:
		  accessModes: [ReadWriteOnce]
		  capacity: {storage: 1Gi}
		  persistentVolumeReclaimPolicy: Retain
		  claimRef: {namespace: gpuq-jobs, name: data}
		  hostPath: {path: /nowhere}
		  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [gone]}]}]}}
		---
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: data, namespace: gpuq-jobs}
		spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: pv-data, resources: {requests: {storage: 1Gi}}}
	END
	kube wait gpuq-jobs/persistentvolumeclaims/data status.phase=Bound --timeout 60 && j=$(fake_job "gpus: 1\nvolumes: [{claim: data, path: /data}]") &&
	wait_for 60 job_is "$j" reason Unsatisfiable && gpuq why "$j" >why.out && cat why.out && says why.out "Reason  *Unsatisfiable claim data: have 0, need 1" && job_is "$j" reasons.0.object "claim data" && gpuq cancel "$j"
'

test_done
