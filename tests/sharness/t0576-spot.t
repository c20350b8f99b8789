#!/bin/sh
test_description='spot nodes: what clouds say before they take a node is no failure; AC-DWS-5: after two of them the next flavor'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

cat >site.yaml <<-END
	version: 1
	flavors: [{name: a100-spot}, {name: a100}]
	pools:
	- {name: s, selector: {buy: spot}, flavor: a100-spot, spot: true}
	- {name: p, selector: {buy: plain}, flavor: a100}
	qos: [{name: firm, preemptible: false}]
	queues: [{name: q, quota: 9, qos: [normal, firm]}]
END

# of 'YAML...' [option...]: submits a job that runs until it is told to end; prints its id
of() {
	printf "command: [a]\nimage: test\nannotations: {gpuq.test/hang: \"true\"}\ngpus: 1\nqueue: q\n$1\n" >of.yaml && shift && submit "$@" of.yaml
}

# tainted NODE KEY [EFFECT]: it has this taint alone; well NODE: none
tainted() {
	api PATCH "/nodes/$1" "{\"spec\": {\"taints\": [{\"key\": \"$2\", \"effect\": \"${3-NoSchedule}\"}]}}" >/dev/null
}
well() {
	api PATCH "/nodes/$1" "{\"spec\": {\"taints\": null}}" >/dev/null && wait_for 60 node_is "$1" state idle
}

# runs JOB NODE: on that one
runs() {
	job_is "$1" state RUNNING && job_is "$1" pods.0.node "$2"
}

test_expect_success 'three spot nodes and a plain one' '
	start_fake --nodes 4 --gpus 1 && present="\"nvidia.com/gpu.product\": \"Tesla-T4\"" &&
	for i in 0 1 2; do offers node-000$i "\"nvidia.com/gpu\": \"1\"" "$present, \"buy\": \"spot\"" || return 1; done &&
	offers node-0003 "\"nvidia.com/gpu\": \"1\"" "$present, \"buy\": \"plain\"" && start_fake_gpuqd --site "$PWD/site.yaml" &&
	wait_for 60 node_is node-0002 pool s && wait_for 60 node_is node-0003 pool p
'

test_expect_success 'AC-DWS-5: a spot node is taken twice, the third start is on the next flavor' '
	a=$(of "flavor: [a100-spot, a100]\nretry: {limit: 0}") && wait_for 60 runs "$a" node-0000 && submitted=$(job "$a" submit_time) &&
	tainted node-0000 cloud.google.com/impending-node-termination && wait_for 90 runs "$a" node-0001 &&
	tainted node-0001 aws-node-termination-handler/spot-itn && wait_for 90 runs "$a" node-0003 && job_is "$a" flavor a100 &&
	job_is "$a" submit_time "$submitted" && job_is "$a" evictions.0.rule spot && job_is "$a" evictions.1.rule spot && job_is "$a" attempt 2 &&
	gpuq why "$a" >out && gpuq events "$a" >out && says out "the cloud takes node node-0000 away" &&
	node_is node-0000 state drained && gpuq nodes >out && says out "its cloud takes it away"
'

test_expect_success 'the taints of each cloud; one that only discourages says nothing' '
	well node-0000 && well node-0001 && gpuq cancel "$a" && wait_for 60 job_is "$a" state CANCELLED &&
	for key in ToBeDeletedByClusterAutoscaler karpenter.sh/disrupted aws-node-termination-handler/rebalance-recommendation; do
		b=$(of "flavor: a100-spot\nspot: only") && wait_for 60 runs "$b" node-0000 && tainted node-0000 $key &&
		wait_for 90 runs "$b" node-0001 && job_is "$b" evictions.0.rule spot && gpuq cancel "$b" && well node-0000 &&
		wait_for 60 job_is "$b" state CANCELLED || return 1
	done &&
	b=$(of "flavor: a100-spot") && wait_for 60 runs "$b" node-0000 && tainted node-0000 DeletionCandidateOfClusterAutoscaler PreferNoSchedule &&
	c=$(of "flavor: a100") && wait_for 60 runs "$c" node-0003 && runs "$b" node-0000 && gpuq cancel "$b" "$c" && well node-0000 &&
	wait_for 60 job_is "$b" state CANCELLED
'

test_expect_success 'Azure: the condition of a scheduled preemption, but not that of a reboot' '
	b=$(of "flavor: a100-spot") && wait_for 60 runs "$b" node-0000 &&
	api PATCH /nodes/node-0000/status "{\"status\": {\"conditions\": [{\"type\": \"VMEventScheduled\", \"status\": \"True\", \"reason\": \"VMEventScheduled\", \"message\": \"Reboot Scheduled\"}]}}" >/dev/null &&
	c=$(of "flavor: a100") && wait_for 60 runs "$c" node-0003 && runs "$b" node-0000 &&
	api PATCH /nodes/node-0000/status "{\"status\": {\"conditions\": [{\"type\": \"VMEventScheduled\", \"status\": \"True\", \"reason\": \"VMEventScheduled\", \"message\": \"Preempt Scheduled: 5 minutes\"}]}}" >/dev/null &&
	wait_for 90 runs "$b" node-0001 && job_is "$b" evictions.0.rule spot && gpuq cancel "$b" "$c" && wait_for 60 job_is "$b" state CANCELLED
'

# disrupted JOB [NUMBER]: the kubelet is about to end that pod of it, which runs on
disrupted() {
	api PATCH "/namespaces/default/pods/$(job "$1" "pods.${2-0}.name")/status" "{\"status\": {\"conditions\": [{\"type\": \"DisruptionTarget\",
		\"status\": \"True\", \"reason\": \"TerminationByKubelet\", \"message\": \"imminent node shutdown\"}]}}" >/dev/null
}

# n_signals N: so many signals of checkpoints were sent
n_signals() {
	n_signals_got=$(grep -c '"signal-10"' audit)
	[ "$n_signals_got" = "$1" ] || { echo "$n_signals_got signals, not $1"; return 1; }
}

test_expect_success 'a pod that runs, and that the cluster says it is about to end: its job saves itself at once' '
	b=$(of "flavor: a100-spot\nretry: {limit: 0}\ncheckpoint: {signal: USR1, grace: 2s}") && job_becomes "$b" RUNNING 60 &&
	disrupted "$b" && wait_for 60 n_signals 1 && wait_for 90 job_is "$b" attempt 1 && job_becomes "$b" RUNNING 90 &&
	job_is "$b" evictions.0.rule spot && job_is "$b" evictions.0.cause drain && gpuq events "$b" >out && says out "imminent node shutdown" &&
	gpuq cancel "$b" && wait_for 60 job_is "$b" state CANCELLED
'
test_expect_success 'so do all pods of a gang, of which others delete one, on nodes that are not spot as well' '
	for i in 1 2; do offers node-000$i "\"nvidia.com/gpu\": \"1\"" "$present, \"buy\": \"plain\"" || return 1; done && wait_for 60 node_is node-0002 pool p &&
	b=$(of "flavor: a100\npods: 2\nretry: {limit: 0}\ncheckpoint: {signal: USR1, grace: 2s}" --annotation=gpuq.test/slow-exit=10s) && job_becomes "$b" RUNNING 60 &&
	api POST "/namespaces/default/pods/$(job "$b" pods.0.name)/eviction" "{\"kind\": \"Eviction\", \"metadata\": {}}" >/dev/null && wait_for 60 n_signals 3 &&
	wait_for 90 job_is "$b" attempt 1 && job_is "$b" evictions.0.rule pod_lost && job_becomes "$b" RUNNING 90 && n_signals 3 &&
	gpuq cancel "$b" && wait_for 60 job_is "$b" state CANCELLED &&
	for i in 1 2; do offers node-000$i "\"nvidia.com/gpu\": \"1\"" "$present, \"buy\": \"spot\"" || return 1; done && wait_for 60 node_is node-0002 pool s
'

test_expect_success 'jobs that cannot be preempted, and gangs, are kept off them unless they say otherwise' '
	k=$(of "qos: firm\nflavor: a100-spot") && wait_for 60 job_is "$k" reason Unsatisfiable && gpuq why "$k" >out && gpuq cancel "$k" &&
	says out "nodes that the cloud may take away are not used" && says out "with spot: allow 3 nodes would do: node-0000" &&
	n=$(of "qos: firm") && wait_for 60 runs "$n" node-0003 && gpuq cancel "$n" && wait_for 60 job_is "$n" state CANCELLED &&
	m=$(of "qos: firm" --spot only) && g=$(of "pods: 2") && job_becomes "$m" RUNNING 60 && job_is "$m" flavor a100-spot &&
	wait_for 60 job_is "$g" reason Unsatisfiable && gpuq cancel "$m" "$g"
'

test_expect_success 'what is wrong is refused' '
	printf "queue: q\nimage: x\ncommand: [\"true\"]\nspot: sometimes\n" >bad.yaml && exits 1 gpuq submit bad.yaml && grep "bad.yaml:4:7: spot: expected" err &&
	exits 1 gpuq submit --spot never of.yaml && printf "version: 1\nqueues: [{name: q, max_spot_preemptions: 0}]\n" >bad.site &&
	exits 1 gpuq apply -f bad.site && grep "bad.site:2:.*max_spot_preemptions" err
'

test_done
