#!/bin/sh
test_description='real control plane: reclaim with grace, gangs, relocation, backfill, the time limit'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cat >site.yaml <<'END'
version: 1
queues:
- {name: prod, quota: 4}
- {name: batch, quota: 4}
END

cluster_for_gpuqd --nodes 2 --gpus 4

# evicted ID CAUSE: it was, once
evicted() {
	job_is "$1" evictions.0.cause "$2" && test "$(job "$1" evictions | grep -o '"cause"' | wc -l)" = 1
}

test_expect_success 'a daemon with two queues; one uses what the other does not ask for' '
	start_kube_gpuqd --site "$PWD/site.yaml" && wait_for 60 node_is node2 idle &&
	old=$(fake_job "queue: batch\ngpus: 4\n$(fate hang=true)") && job_becomes "$old" RUNNING 120 &&
	victim=$(fake_job "queue: batch\npods: 2\ngpus: 2\ngrace: 60s\n$(fate hang=true slow-exit=15s)") &&
	job_becomes "$victim" RUNNING 120 && since=$(job "$victim" submit_time)
'

# ---- reclaim ----

test_expect_success 'a gang inside its quota: the newest leaves, with the grace it asked for' '
	claimant=$(fake_job "queue: prod\npods: 2\ngpus: 2\n$(fate hang=true)") &&
	wait_for 60 job_is "$claimant" reason Victims && job_is "$victim" state COMPLETING &&
	job_is "$claimant" promise.victims "[\"$victim\"]" && n_pods "$claimant" 0 &&
	wait_for 60 eval "test \$(pods_of $victim metadata.deletionGracePeriodSeconds | sort -u) = 60" && job_is "$old" state RUNNING
'

test_expect_success 'a kill of the daemon while they leave: nobody else is evicted, nothing is given away' '
	third=$(fake_job "queue: batch\ngpus: 1\n$(fate run=1s)") && kill_gpuqd && start_kube_gpuqd &&
	job_is "$claimant" promise.victims "[\"$victim\"]" && job_is "$old" evictions "[]" && n_pods "$third" 0
'

test_expect_success 'AC-VDK-8: it starts, all of it, when the last of their pods is gone' '
	job_becomes "$claimant" RUNNING 120 && n_pods "$claimant" 2 && job_is "$old" state RUNNING && n_pods "$third" 0 &&
	wait_for 60 job_is "$victim" state PENDING && n_pods "$victim" 0
'

test_expect_success 'the victim keeps its submit time, shows who asked and by which rule, and runs again later' '
	job_is "$victim" submit_time "$since" && evicted "$victim" reclaim && job_is "$victim" evictions.0.by "$claimant" &&
	job_is "$victim" evictions.0.by_queue prod && test "$(job "$victim" evictions.0.rule)" != null &&
	gpuq cancel "$claimant" && job_becomes "$victim" RUNNING 120 && job_is "$victim" attempt 1 && n_pods "$victim" 2 &&
	gpuq cancel "$victim" "$old" "$third" && wait_for 120 eval "test \$(free_gpus) = 8"
'

# ---- relocation ----

test_expect_success 'a job is moved so that one fits that needs a whole node' '
	a=$(fake_job "queue: batch\ngpus: 2\n$(fate hang=true)") && job_becomes "$a" RUNNING 120 && node=$(job "$a" pods.0.node) &&
	b=$(fake_job "queue: batch\ngpus: 2\n$(fate hang=true)") && job_becomes "$b" RUNNING 120 &&
	c=$(fake_job "queue: prod\ngpus: 2\n$(fate hang=true)") && job_becomes "$c" RUNNING 120 &&
	gpuq cancel "$b" && wait_for 60 eval "test \$(free_gpus) = 4" && wait_for 60 node_frees "$node" 2 &&
	whole=$(fake_job "queue: batch\ngpus: 4\n$(fate hang=true)") && job_becomes "$whole" RUNNING 120 &&
	wait_for 120 eval "job_is $a state RUNNING && job_is $c state RUNNING" &&
	moved=$({ job "$a" evictions; job "$c" evictions; } | grep -c consolidate) && test "$moved" = 1 &&
	test "$(job "$a" pods.0.node)" = "$(job "$c" pods.0.node)" &&
	gpuq cancel "$a" "$c" "$whole" && wait_for 120 eval "test \$(free_gpus) = 8"
'

# ---- time ----

test_expect_success 'backfill: a short job runs ahead of one that waits for everything, a long one does not' '
	long=$(fake_job "queue: batch\npods: 2\ngpus: 3\ntime: 10m\n$(fate hang=true)") && job_becomes "$long" RUNNING 120 &&
	all=$(fake_job "queue: batch\npods: 2\ngpus: 4\ntime: 1m\n$(fate hang=true)") && wait_for 60 job_is "$all" reason Resources &&
	wait_for 60 eval "test \$(job $all planned_time) != null" &&
	later=$(fake_job "queue: batch\ngpus: 1\ntime: 2h\n$(fate hang=true)") &&
	short=$(fake_job "queue: batch\ngpus: 1\ntime: 5m\n$(fate run=1s)") && job_becomes "$short" COMPLETED 120 &&
	n_pods "$all" 0 && n_pods "$later" 0 && gpuq cancel "$long" && job_becomes "$all" RUNNING 120 && n_pods "$all" 2 &&
	n_pods "$later" 0 && gpuq cancel "$all" "$later" && wait_for 120 eval "test \$(free_gpus) = 8"
'

test_expect_success 'the time limit ends a job, with its grace' '
	id=$(fake_job "queue: batch\ngpus: 1\ntime: 2s\ngrace: 20s\n$(fate hang=true slow-exit=2s)") &&
	job_becomes "$id" TIMEOUT 180 && exits 251 gpuq wait "$id" && job_is "$id" evictions "[]"
'

test_expect_success 'nothing was over-committed' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
