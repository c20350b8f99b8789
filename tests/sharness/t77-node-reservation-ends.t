#!/bin/sh
test_description='AC-CAL-1 on a real node: a reservation ends, the jobs in it get their checkpoint signal and are requeued'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/exec.yaml" --no-kwok --real-node --real-gpus 4

# saver LINES: a job that says when it has set its trap, and when it is signalled; then it takes a while to save
saver() {
	printf "image: $kube_image\ncommand: [/bin/sh, -c, 'trap \"echo saved; sleep 20; exit 85\" USR1; echo ready; while :; do sleep 0.2; done']
checkpoint: {signal: USR1, grace: 2m}\n$1\n" >saver.yaml && submit saver.yaml
}
# says_in JOB WORD: a line of its output
says_in() {
	gpuq logs "$1" 2>/dev/null | grep -qx "$2"
}

test_expect_success 'a daemon, a node with four GPUs' '
	cat >site.yaml <<-END &&
	version: 1
	queues: [{name: b, quota: 0}, {name: d, quota: 1}]
	END
	start_kube_gpuqd --site "$PWD/site.yaml" && wait_for 120 node_frees real1 4
'

test_expect_success 'AC-CAL-1: three of them are reserved from now on: jobs of b start there, others beside it or wait' '
	exits 0 gpuq reserve demo --start now -t 4m -g 3 -q b && inside=$(saver "queue: b\ngpus: 3") && beside=$(saver "queue: d\ngpus: 1") &&
	job_becomes "$inside" RUNNING 180 && job_becomes "$beside" RUNNING 180 && next=$(saver "queue: d\ngpus: 2") &&
	wait_for 60 eval "says_in $inside ready && says_in $beside ready" && wait_for 60 eval "test \$(job $next reason) != null" && job_is "$next" state PENDING
'

test_expect_success 'AC-CAL-1: before its end the job in it is signalled, saves itself and is queued again; the other runs on' '
	wait_for 300 says_in "$inside" saved && wait_for 120 job_is "$inside" state PENDING && job_is "$inside" evictions.0.rule reservation-ends &&
	job_is "$inside" evictions.0.cause drain && gpuq why "$inside" >out && says out "he reservation that it ran in ends" &&
	gpuq events "$inside" >out && says out "USR1" && job_is "$beside" state RUNNING && job_is "$beside" attempt 0 && ! says_in "$beside" saved
'

test_expect_success 'when it is over, what it held is free for all' '
	gpuq cancel "$inside" && job_becomes "$next" RUNNING 300 && n_pods "$inside" 0 && job_is "$beside" attempt 0 && gpuq cancel --me
'

test_expect_success 'nothing was overcommitted' '
	nothing_was_overcommitted
'

test_done
