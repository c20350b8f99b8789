#!/bin/sh
test_description='real control plane: refused pods, a killed daemon, slow exits, devices that differ'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --nodes 2 --gpus 4

# ---- refused pods ----

test_expect_success 'a node that refuses pods, and one that is full' '
	cluster reject node1 3>&- 4>&- 5>&- && foreign_pod full node2 4 gpuq.test/hang=true >/dev/null &&
	start_kube_gpuqd && wait_for 60 node_frees node2 0
'

test_expect_success 'AC-POD-1: a refused pod is tried again, less and less; one job costs others no node' '
	id=$(fake_job "gpus: 1") &&
	wait_for 120 eval "test \$(grep -c \"node.refused_job.*node=node1\" gpuqd.log) -ge 4" &&
	! grep -q "node.refused_pod" gpuqd.log && test "$(node_state node1)" != suspect
'

test_expect_success 'a thousand jobs of one kind are no different jobs' '
	more=$(fake_job "gpus: 1\narray: 0-3") &&
	wait_for 120 eval "test \$(grep -c \"node.refused_job.*node=node1\" gpuqd.log) -ge 7" &&
	! grep -q "node.refused_pod" gpuqd.log && gpuq cancel "$more" && exits 252 gpuq wait "$more"
'

test_expect_success 'no devices are believed there, which nodes says; jobs that ask for none run there' '
	b=$(fake_job "gpus: 2") && c=$(fake_job "gpus: 3") && wait_for 60 job_is "$b" reason Resources &&
	gpuq nodes --json >nodes.out && says nodes.out "its kubelet refuses nvidia.com/gpu" && gpuq nodes -s >out &&
	says out "node1 .*its kubelet refuses nvidia.com/gpu" && gpuq why "$c" >out && says out "0 of 3 GPUs free" &&
	cpu=$(fake_job "nodes: [node1]") && job_becomes "$cpu" COMPLETED 60 && job_is "$cpu" attempt 0 &&
	test "$(node_state node1)" != suspect && gpuq cancel "$b" "$c"
'

test_expect_success 'AC-POD-1: the job still waits for a node, its retries are untouched, its attempts are counted' '
	job_is "$id" state PENDING && test "$(job "$id" attempt)" -ge 3 && job_is "$id" evictions "[]" && job_is "$id" gpu_seconds 0.0
'

test_expect_success 'it runs on the other node as soon as that is free' '
	kube delete default/pods/full --grace 0 && job_becomes "$id" COMPLETED 120 &&
	job_is "$id" exit_code 0 && job_is "$id" pods.0.node node2
'

# refusing REASON MESSAGE: what node1 says to each pod from now on
refusing() {
	cluster unreject node1 3>&- 4>&- 5>&- && cluster reject node1 "$@" 3>&- 4>&- 5>&-
}

# to_node1 NAME CPUS [LINES]: a job of its own kind, which only node1 may run
to_node1() {
	fake_job "gpus: 1\nnodes: [node1]\nname: $1\ncpus: $2\n${3-}"
}

# refused_there N: so often in all has node1 refused a job without harm to others
refused_there() {
	test "$(grep -c "node.refused_job.*node=node1" gpuqd.log)" -ge "$1"
}

test_expect_success 'a refusal that names no resource: jobs of one kind do not make the node suspect' '
	refusing UnexpectedAdmissionError "Pod was rejected: unexpected error, runtime handler is not ready" &&
	before=$(grep -c "node.refused_job.*node=node1" gpuqd.log) && a=$(to_node1 a 1 "array: 0-3") &&
	wait_for 60 refused_there $((before + 4)) && ! grep -q "node.refused_pod" gpuqd.log && test "$(node_state node1)" != suspect
'

test_expect_success 'AC-POD-1: different jobs do: it is left alone by others, too, and nodes says so' '
	refusing NodeAffinity "Pod was rejected: Predicate NodeAffinity failed" && b=$(to_node1 b 2) && c=$(to_node1 c 3) &&
	wait_for 120 node_is node1 suspect && says gpuqd.log "node.refused_pod node=node1" && gpuq nodes --json >nodes.out &&
	says nodes.out "pods failed there of late" && other=$(fake_job "gpus: 1\nname: other\n$(fate run=100ms)") &&
	job_becomes "$other" COMPLETED 60 && job_is "$other" pods.0.node node2 && job_is "$other" attempt 0 && gpuq cancel "$a" "$b" "$c"
'

test_expect_success 'AC-POD-1: the node that refused takes pods again after its time' '
	cluster unreject node1 3>&- 4>&- 5>&- &&
	a=$(fake_job "gpus: 4\n$(fate hang=true)") && b=$(fake_job "gpus: 4\n$(fate hang=true)") &&
	job_becomes "$a" RUNNING 120 && job_becomes "$b" RUNNING 120 &&
	gpuq cancel "$a" "$b" && job_becomes "$a" CANCELLED 120 && job_becomes "$b" CANCELLED 120
'

# ---- a killed daemon ----

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

# created_once ID...: the apiserver made one pod for each since $before, by uid
created_once() {
	kube raw GET "gpuq-jobs/pods?watch=1&timeoutSeconds=3&resourceVersion=$before" 2>/dev/null |
		/usr/bin/python3 -c '
import collections, json, sys
uids = collections.defaultdict(set)
for event in map(json.loads, sys.stdin):
    if event["type"] == "ADDED":
        meta = event["object"]["metadata"]
        uids[meta["labels"]["gpuq.io/job"]].add(meta["uid"])
wrong = {job: len(uids[job]) for job in sys.argv[1:] if len(uids[job]) != 1}
sys.exit("pods made for these jobs: %s" % wrong if wrong else 0)' "$@"
}

version_now() {
	kube get gpuq-jobs/pods metadata.resourceVersion
}

test_expect_success FAILPOINTS 'AC-POD-2: killed when the decision is stored, before the pod is asked for: one pod' '
	stop_gpuqd && before=$(version_now) && start_kube_gpuqd && id=$(fake_job "gpus: 1" --hold) && stop_gpuqd &&
	GPUQ_FAILPOINT=dispatch.create=kill && export GPUQ_FAILPOINT && start_kube_gpuqd && { gpuq release "$id" || :; } &&
	unset GPUQ_FAILPOINT &&
	wait_for 60 gpuqd_is_dead && start_kube_gpuqd &&
	job_becomes "$id" COMPLETED 120 && job_is "$id" attempt 0 && created_once "$id"
'

test_expect_success FAILPOINTS 'killed before a cancelled pod is told to leave: it leaves' '
	id=$(fake_job "gpus: 1\n$(fate hang=true)" --hold) && stop_gpuqd &&
	GPUQ_FAILPOINT=dispatch.delete=kill && export GPUQ_FAILPOINT && start_kube_gpuqd && gpuq release "$id" &&
	job_becomes "$id" RUNNING 120 && { gpuq cancel "$id" || :; } &&
	unset GPUQ_FAILPOINT &&
	wait_for 60 gpuqd_is_dead && start_kube_gpuqd &&
	job_becomes "$id" CANCELLED 120 && wait_for 60 n_pods "$id" 0
'

test_expect_success 'AC-POD-2: killed at any moment: every job once' '
	before=$(version_now) && : >ids &&
	for round in 1 2 3 4 5 6; do
		for n in 1 2 3; do fake_job "gpus: 1\n$(fate run=500ms)" >>ids || return 1; done &&
		sleep "0.$((round * 13 % 10))$round" &&
		kill_gpuqd && start_kube_gpuqd || return 1
	done && test "$(wc -l <ids)" = 18 &&
	for id in $(cat ids); do
		job_becomes "$id" COMPLETED 120 && job_is "$id" attempt 0 || return 1
	done &&
	created_once $(cat ids)
'

# ---- slow exits ----

test_expect_success 'AC-POD-3: devices of a job that leaves slowly are nobody else'\''s before it is gone' '
	a=$(fake_job "gpus: 4\n$(fate hang=true slow-exit=6s)") && job_becomes "$a" RUNNING 120 &&
	b=$(fake_job "gpus: 4\n$(fate hang=true slow-exit=6s)") && job_becomes "$b" RUNNING 120 &&
	next=$(fake_job "gpus: 4") && wait_for 60 job_is "$next" reason Resources &&
	pod=$(the_pod "$a") && gpuq cancel "$a" && wait_for 60 job_is "$a" state COMPLETING &&
	n_pods "$next" 0 && kube get "$pod" status.phase && n_pods "$next" 0 &&
	job_becomes "$a" CANCELLED 120 && job_becomes "$next" COMPLETED 120 &&
	gpuq cancel "$b" && job_becomes "$b" CANCELLED 120
'

# ---- devices that differ ----

test_expect_success 'AC-POD-4: a device plugin that chose another device is believed' '
	a=$(fake_job "gpus: 1\nnodes: [node1]\n$(fate hang=true)") && job_becomes "$a" RUNNING 120 &&
	job_is "$a" pods.0.devices.0.index null && pod=$(the_pod "$a") &&
	kube patch "$pod" "{\"metadata\": {\"annotations\": {\"gpuq.io/devices\": \"3\"}}}" &&
	wait_for 60 job_is "$a" pods.0.devices.0.index 3 && job_is "$a" state RUNNING &&
	job_is "$a" evictions "[]" &&
	b=$(fake_job "gpus: 3\nnodes: [node1]\n$(fate hang=true)") && job_becomes "$b" RUNNING 120 &&
	gpuq nodes -h -o GPU,JOBS node1 | tr -s " " | sed "s/^ //" | sort >devices && printf "%s %s\n" 0-2 "$b" 3 "$a" | diff devices - &&
	gpuq cancel "$a" "$b" && job_becomes "$a" CANCELLED 120 && job_becomes "$b" CANCELLED 120
'

test_expect_success 'nothing was over-committed' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
