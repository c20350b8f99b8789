#!/bin/sh
test_description='real control plane: spot nodes that clouds take away, pods that the cluster is about to end; AC-DWS-5'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd

cat >site.yaml <<-END
	version: 1
	flavors: [{name: a100-spot}, {name: a100}]
	pools:
	- {name: s, selector: {buy: spot}, flavor: a100-spot, spot: true}
	- {name: p, selector: {buy: plain}, flavor: a100}
	queues: [{name: q, quota: 9}]
END

# of LINES: a job of one device that runs until it is told to end, and that has no retries
of() {
	fake_job "queue: q\ngpus: 1\nretry: {limit: 0}\n$1\n$(fate hang=true)"
}

# tainted NODE KEY [EFFECT]: it has this taint alone; well NODE: none, and no condition of a cloud
tainted() {
	kube patch "nodes/$1" "{\"spec\": {\"taints\": [{\"key\": \"$2\", \"effect\": \"${3-NoSchedule}\"}]}}" >/dev/null
}
well() {
	kube patch "nodes/$1" "{\"spec\": {\"taints\": null, \"unschedulable\": null}}" >/dev/null && wait_for 60 node_is "$1" idle
}

# told NODE TYPE STATUS REASON MESSAGE: a condition beside the others
told() {
	kube patch "nodes/$1/status" --type strategic "{\"status\": {\"conditions\": [{\"type\": \"$2\", \"status\": \"$3\", \"reason\": \"$4\", \"message\": \"$5\"}]}}" >/dev/null
}

# runs JOB NODE: on that one, all its pods; moves JOB NODE RULE: it goes there, and that is no retry
runs() {
	job_is "$1" state RUNNING && job_is "$1" pods.0.node "$2"
}
moves() {
	wait_for 120 runs "$1" "$2" && job_is "$1" evictions.0.rule "$3"
}

# over JOB...: cancelled, and gone
over() {
	gpuq cancel "$@" && for over_one; do wait_for 60 job_is "$over_one" state CANCELLED && wait_for 60 n_pods "$over_one" 0 || return 1; done
}

test_expect_success 'three spot nodes and two plain ones' '
	printf "finished_pod_keep: 1s\n" >gpuqd.yaml && fakenode add "s[1-3]" gpus=1 label=buy=spot && fakenode add "p[1-2]" gpus=1 label=buy=plain &&
	start_kube_gpuqd --config "$PWD/gpuqd.yaml" --site "$PWD/site.yaml" && for n in s1 s2 s3 p1 p2; do wait_for 60 node_is $n idle || return 1; done
'

test_expect_success 'AC-DWS-5: a spot node is taken twice, the third start is on the next flavor' '
	a=$(of "flavor: [a100-spot, a100]") && wait_for 60 runs "$a" s1 && submitted=$(job "$a" submit_time) && sleep 2 &&
	tainted s1 cloud.google.com/impending-node-termination && moves "$a" s2 spot && tainted s2 aws-node-termination-handler/spot-itn &&
	wait_for 120 runs "$a" p1 && job_is "$a" flavor a100 && job_is "$a" submit_time "$submitted" && job_is "$a" evictions.1.rule spot &&
	job_is "$a" attempt 2 && gpuq events "$a" >out && says out "the cloud takes node s2 away" && node_is s1 drained && over "$a" && well s1 && well s2
'

test_expect_success 'what was lost there is refunded' '
	gpuq report --json >report.out && /usr/bin/python3 -c "
import json
rows = [json.loads(l) for l in open(\"report.out\")]
assert sum(r.get(\"refunded_gpu_seconds\") or 0 for r in rows if r.get(\"flavor\") == \"a100-spot\") > 0, rows"
'

test_expect_success 'the taints of each cloud' '
	for key in ToBeDeletedByClusterAutoscaler karpenter.sh/disrupted karpenter.sh/disruption aws-node-termination-handler/rebalance-recommendation; do
		b=$(of "flavor: a100-spot") && wait_for 60 runs "$b" s1 && tainted s1 $key && moves "$b" s2 spot && over "$b" && well s1 || return 1
	done
'

test_expect_success 'the conditions of Azure; that of a reboot says nothing' '
	b=$(of "flavor: a100-spot") && wait_for 60 runs "$b" s1 && told s1 VMEventScheduled True VMEventScheduled "Reboot Scheduled" &&
	c=$(of "flavor: a100") && wait_for 60 runs "$c" p1 && runs "$b" s1 && told s1 VMEventScheduled True VMEventScheduled "Preempt Scheduled: 30 s" &&
	moves "$b" s2 spot && over "$b" "$c" && told s1 VMEventScheduled False NoVMEventScheduled "" && well s1
'

test_expect_success 'a plain node that an autoscaler takes away is no failure either' '
	b=$(of "flavor: a100") && wait_for 60 runs "$b" p1 && tainted p1 ToBeDeletedByClusterAutoscaler && moves "$b" p2 node_ends && over "$b" && well p1
'

test_expect_success 'DisruptionTarget of a pod that runs: its job leaves at once' '
	b=$(of "flavor: a100-spot") && wait_for 60 runs "$b" s1 && kube patch "$(the_pod "$b")/status" --type strategic "{\"status\": {\"conditions\": [
		{\"type\": \"DisruptionTarget\", \"status\": \"True\", \"reason\": \"TerminationByKubelet\", \"message\": \"imminent node shutdown\"}]}}" >/dev/null &&
	wait_for 120 job_is "$b" attempt 1 && job_becomes "$b" RUNNING 60 && job_is "$b" evictions.0.rule spot && gpuq events "$b" >out && says out "imminent node shutdown" && over "$b"
'

test_expect_success 'a gang of which the eviction API ends a pod leaves as a whole' '
	b=$(of "flavor: a100\npods: 2") && job_becomes "$b" RUNNING 60 && kube drain p1 --timeout 60 && wait_for 60 job_is "$b" evictions.0.rule pod_lost &&
	gpuq events "$b" >out && says out "Eviction API" &&
	kube patch nodes/p1 "{\"spec\": {\"unschedulable\": null}}" >/dev/null && job_becomes "$b" RUNNING 90 && over "$b" && wait_for 60 node_is p1 idle
'

test_expect_success 'a taint that ends pods' '
	b=$(of "flavor: a100") && wait_for 60 runs "$b" p1 && tainted p1 example.org/maintenance NoExecute && moves "$b" p2 pod_lost && job_is "$b" attempt 1 && over "$b" && well p1
'

test_expect_success 'nothing was overcommitted' '
	nothing_was_overcommitted
'

test_done
