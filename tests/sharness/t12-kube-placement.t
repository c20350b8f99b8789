#!/bin/sh
test_description='real control plane: where jobs may stand: labels, affinity, taints, other users, cordons'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd

test_expect_success 'nodes of several kinds' '
	cluster node red gpus=4 label=colour=red label=rank=3 &&
	cluster node blue gpus=4 label=colour=blue label=rank=7 &&
	cluster node kept gpus=4 label=colour=kept taint=team=a:NoSchedule &&
	cluster node hard gpus=4 label=colour=hard taint=team=b:NoExecute &&
	start_kube_gpuqd && wait_for 60 node_is hard idle
'

# runs_on NODE LINES...: a job of these lines ends there
runs_on() {
	id=$(fake_job "$2") && job_becomes "$id" COMPLETED 120 && job_is "$id" pods.0.node "$1"
}

# waits LINES [REASON]: there is no place for it
waits() {
	id=$(fake_job "$1") && wait_for 60 eval "job $id reason | grep -Ex \"${2:-Unsatisfiable|NodesUnavailable}\"" &&
		job_is "$id" state PENDING && n_pods "$id" 0 && gpuq cancel "$id"
}

test_expect_success 'node selector' '
	runs_on red "gpus: 1\nnode_selector: {colour: red}" && runs_on blue "gpus: 1\nnode_selector: {colour: blue}" &&
	waits "gpus: 1\nnode_selector: {colour: green}"
'

test_expect_success 'affinity: In, Gt, NotIn with Exists, a node by its name' '
	runs_on blue "gpus: 1\naffinity: {required: [{match: [{key: colour, operator: In, values: [blue, green]}]}]}" &&
	runs_on blue "gpus: 1\naffinity: {required: [{match: [{key: rank, operator: Gt, values: [\"5\"]}]}]}" &&
	runs_on red "gpus: 1\naffinity: {required: [{match: [{key: colour, operator: NotIn, values: [blue, kept, hard]}, {key: rank, operator: Exists}]}]}" &&
	runs_on red "gpus: 1\naffinity: {required: [{match: [{key: metadata.name, operator: In, values: [red]}]}]}"
'

test_expect_success 'preferred affinity is a wish' '
	runs_on blue "gpus: 1\naffinity: {preferred: [{weight: 100, match: [{key: colour, operator: In, values: [blue]}]}]}" &&
	runs_on red "gpus: 1\naffinity: {preferred: [{weight: 100, match: [{key: colour, operator: In, values: [red]}]}]}"
'

test_expect_success 'affinity of a manifest' '
	cat >pod.yaml <<-END &&
	apiVersion: v1
	kind: Pod
	metadata: {name: picky}
	spec:
	  affinity:
	    nodeAffinity:
	      requiredDuringSchedulingIgnoredDuringExecution:
	        nodeSelectorTerms:
	        - matchExpressions: [{key: rank, operator: Lt, values: ["5"]}]
	  containers:
	  - name: main
	    image: $kube_image
	    command: [sleep, "1"]
	    resources: {limits: {nvidia.com/gpu: 1}}
	END
	id=$(submit pod.yaml) && job_becomes "$id" COMPLETED 120 && job_is "$id" pods.0.node red
'

test_expect_success 'taints keep out whoever does not tolerate them' '
	waits "gpus: 1\nnode_selector: {colour: kept}" && waits "gpus: 1\nnode_selector: {colour: hard}" &&
	waits "gpus: 1\nnode_selector: {colour: kept}\ntolerations: [{key: team, operator: Equal, value: b}]"
'

test_expect_success 'and let in whoever does' '
	runs_on kept "gpus: 1\nnode_selector: {colour: kept}\ntolerations: [{key: team, operator: Equal, value: a, effect: NoSchedule}]" &&
	runs_on hard "gpus: 1\nnode_selector: {colour: hard}\ntolerations: [{key: team, operator: Exists}]"
'

test_expect_success 'pods of others are counted' '
	foreign_pod theirs red 3 gpuq.test/hang=true >/dev/null && wait_for 60 node_frees red 1 &&
	waits "gpus: 2\nnode_selector: {colour: red}" "Resources|NodesUnavailable|Unsatisfiable" &&
	runs_on red "gpus: 1\nnode_selector: {colour: red}"
'

test_expect_success 'and no more when they have ended' '
	id=$(fake_job "gpus: 4\nnode_selector: {colour: red}") && wait_for 60 job_is "$id" reason Resources &&
	kube delete default/pods/theirs --grace 0 && job_becomes "$id" COMPLETED 120 &&
	foreign_pod brief red 4 gpuq.test/run=2s >/dev/null && wait_for 60 node_frees red 0 && wait_for 60 node_frees red 4
'

test_expect_success 'CPU and memory of others count as well' '
	cluster node small gpus=2 cpu=4 memory=8Gi label=colour=small && wait_for 60 node_is small idle &&
	kube create default/pods - <<-END >/dev/null &&
	{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "eater", "annotations": {"gpuq.test/hang": "true"}},
	 "spec": {"nodeName": "small", "containers": [{"name": "main", "image": "$kube_image",
	  "resources": {"requests": {"cpu": "3", "memory": "6Gi"}}}]}}
	END
	kube wait default/pods/eater status.phase=Running --timeout 60 &&
	waits "gpus: 1\ncpus: 2\nnode_selector: {colour: small}" Resources &&
	waits "gpus: 1\nmemory: 3Gi\nnode_selector: {colour: small}" Resources &&
	runs_on small "gpus: 1\ncpus: 1\nmemory: 1Gi\nnode_selector: {colour: small}"
'

test_expect_success 'a cordoned node takes nothing new' '
	a=$(fake_job "gpus: 1\nnode_selector: {colour: blue}\n$(fate hang=true)") && job_becomes "$a" RUNNING 120 &&
	kube patch nodes/blue "{\"spec\": {\"unschedulable\": true}}" && wait_for 60 node_is blue drain &&
	b=$(fake_job "gpus: 1\nnode_selector: {colour: blue}") &&
	wait_for 60 eval "job $b reason | grep -Ex \"NodesUnavailable|Unsatisfiable\"" && job_is "$a" state RUNNING &&
	gpuq cancel "$a" && job_becomes "$a" CANCELLED 120 && wait_for 60 node_is blue drained && job_is "$b" state PENDING
'

test_expect_success 'until it is uncordoned' '
	kube patch nodes/blue "{\"spec\": {\"unschedulable\": null}}" && job_becomes "$b" COMPLETED 120
'

test_expect_success 'labels that change later are seen' '
	id=$(fake_job "gpus: 1\nnode_selector: {colour: violet}") && wait_for 60 job_is "$id" state PENDING &&
	kube patch nodes/red "{\"metadata\": {\"labels\": {\"colour\": \"violet\"}}}" && job_becomes "$id" COMPLETED 120
'

test_expect_success 'nothing was over-committed' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
