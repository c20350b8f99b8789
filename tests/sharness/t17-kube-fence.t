#!/bin/sh
test_description='real control plane: two daemons with copies of one state directory'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

first=$GPUQ_SERVER
second=unix:$PWD/second.sock

# start_second: on the copy, in ./copy; log in ./second.log
start_second() {
	gpuqd --cluster kube --kubeconfig "$TMPDIR/k/gpuqd.kubeconfig" --namespace gpuq-jobs --state "$PWD/copy" \
		--listen "$second" </dev/null >>second.log 2>&1 3>&- 4>&- 5>&- &
	second_pid=$!
	at "$second"
	wait_for 60 gpuq version
}

end_second() {
	[ -z "${second_pid-}" ] || kill -KILL "$second_pid" 2>/dev/null
}

fenced() {
	[ "$(gpuq status --json | json cluster.fenced_by)" != null ]
}

not_fenced() {
	gpuq status --json >status.out && [ "$(json cluster.fenced_by <status.out)" = null ] &&
		[ "$(json cluster.stale_since <status.out)" = null ]
}

keeps_out() {
	[ "$(gpuq status --json | json cluster.keeps_out)" != null ]
}

at() {
	GPUQ_SERVER=$1
	export GPUQ_SERVER
}

lease_holder() {
	kube list gpuq-jobs/leases spec.holderIdentity,metadata.name
}

cluster_for_gpuqd --nodes 2

test_expect_success 'a daemon, a job that runs, and a copy of its state directory' '
	start_kube_gpuqd && a=$(fake_job "$(fate run=300s)\ngpus: 1") && job_becomes "$a" RUNNING &&
	d=$(fake_job "gpus: 8\npods: 9") && lease_holder >lease && says lease "gpuqd-" && kill_gpuqd && cp -a state copy
'

test_expect_success 'the same directory takes over at once after a kill' '
	start_kube_gpuqd && ! grep -q lease.other gpuqd.log && job_is "$a" state RUNNING &&
	b=$(fake_job "$(fate run=300s)\ngpus: 1") && job_becomes "$b" RUNNING
'

test_expect_success 'the copy is fenced: it answers reads, takes no job, and both say so' '
	start_second && wait_for 30 fenced && job_is "$a" state RUNNING &&
	gpuq status >out && says out "Fenced" && says out "state .*/state" && job_is "$d" reason Fenced && exits 1 gpuq cancel "$a" &&
	says err "another gpuqd acts" && exits 1 gpuq submit - <<-\END && says err "another gpuqd acts" &&
		image: docker.io/local/busybox:1
		command: [sleep, "1"]
	END
	! gpuq doctor >out && says out "fence" && at "$first" && wait_for 30 keeps_out && gpuq status >out &&
	says out "keeps out" && says out "state .*/copy" && { gpuq doctor >out || :; } && says out "waits to act"
'

test_expect_success 'after 15 s neither has lost anything, and the first goes on' '
	sleep 15 && at "$second" && fenced && at "$first" && not_fenced && job_is "$a" state RUNNING &&
	job_is "$b" state RUNNING && n_pods "$a" 1 && n_pods "$b" 1 &&
	c=$(fake_job "$(fate run=1s)\ngpus: 1") && job_becomes "$c" COMPLETED 60
'

# The one that waits writes its note into the Lease every 5 s; here the Lease is changed just before the end.
test_expect_success 'SIGTERM releases the Lease: the copy acts at once, as after a restore' '
	lease=$(kube list gpuq-jobs/leases metadata.name) &&
	kube patch "gpuq-jobs/leases/$lease" "{\"metadata\": {\"annotations\": {\"test\": \"changed\"}}}" >/dev/null && stop_gpuqd && at "$second" && wait_for 5 eval "! fenced" && wait_for 30 not_fenced &&
	job_is "$a" state RUNNING && n_pods "$b" 1 && wait_for 30 job_is "$b" state RUNNING &&
	gpuq status --json >out && says out recovering
'

test_expect_success 'the first comes back and is fenced in turn; a kill of the other frees it after 10 s' '
	at "$first" && start_gpuqd --cluster kube --kubeconfig "$TMPDIR/k/gpuqd.kubeconfig" --namespace gpuq-jobs &&
	wait_for 30 fenced && kill -KILL "$second_pid" && since=$(date +%s) &&
	wait_for 40 not_fenced && test $(($(date +%s) - since)) -ge 6 && wait_for 30 job_is "$a" state RUNNING &&
	n_pods "$a" 1 && n_pods "$b" 1
'

test_expect_success 'without the right to Leases: a notice, and work goes on' '
	stop_gpuqd && kube delete gpuq-jobs/rolebindings/gpuqd-lease && start_kube_gpuqd && wait_for 30 not_fenced &&
	grep -q lease.off gpuqd.log && e=$(fake_job "$(fate run=1s)\ngpus: 1") && job_becomes "$e" COMPLETED 60 &&
	{ gpuq doctor >out || :; } && says out "one daemon of an identity"
'

test_expect_success 'nothing was over-committed' '
	stop_gpuqd && nothing_was_overcommitted
'

end_second
test_done
