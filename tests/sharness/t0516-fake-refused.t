#!/bin/sh
test_description='the cluster refuses, for its own sake: no job fails, the site hears of it once; nodes that refuse one user stay'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# told_refused COUNT: so many messages of it have come
told_refused() {
	touch hook/got && told_got=$(json body.event <hook/got | grep -cx refused)
	[ "$told_got" = "$1" ] || { echo "told $told_got times"; cat hook/got; return 1; }
}

# waits_for_cluster JOB OBJECT
waits_for_cluster() {
	job_is "$1" state PENDING && job_is "$1" reason ClusterRefused && job_is "$1" reasons.0.object "$2"
}

test_expect_success 'a webhook of the site, a daemon' '
	mkdir hook && { /usr/bin/python3 "$test_source/tests/sharness/hook.py" hook >>hook.log 2>&1 3>&- 4>&- & } &&
	wait_for 60 test -s hook/port && url=http://127.0.0.1:$(cat hook/port)/site &&
	printf "notify:\n  webhooks:\n  - {name: pager, url: \"%s\", on: [refused]}\n" "$url" >gpuqd.yaml &&
	start_fake --nodes 4 && start_fake_gpuqd --config gpuqd.yaml && wait_for 60 eval "test \$(free_gpus) = 16"
'

test_expect_success 'an object that pods need is missing: the jobs wait for it, none has failed' '
	fault clear "on POST pods status=403 reason=Forbidden message=\"pods p is forbidden: error looking up service account default/runner: not found\"" &&
	a=$(fake_job run=100ms -g 1) && wait_for 60 waits_for_cluster "$a" serviceaccount/runner &&
	b=$(fake_job run=100ms -g 1 --array 0-3) && wait_for 60 eval "gpuq queue --json -j $b | grep -q ClusterRefused" &&
	gpuq history --json >out && ! grep FAILED out
'

test_expect_success 'the webhook of the site has heard of it, once, with the object' '
	wait_for 60 told_refused 1 && sleep 3 && told_refused 1 && test "$(grep -c cluster.refused gpuqd.log)" = 1 &&
	says hook/got serviceaccount/runner
'

test_expect_success 'it is there again: all run, and nothing is told anew' '
	fault clear && exits 0 gpuq wait "$a" "$b" && told_refused 1
'

test_expect_success 'a 403 in words that nothing knows is not the fault of the job, either' '
	fault "on POST pods status=403" && a=$(fake_job run=100ms -g 1) && wait_for 60 waits_for_cluster "$a" namespace/default &&
	fault clear && exits 0 gpuq wait "$a" && wait_for 60 told_refused 2
'

test_expect_success 'one user whose pods every kubelet refuses: the job is held, no node is avoided' '
	id=$(fake_job reject=true -g 1) && two=$(fake_job reject=true -g 1) && wait_for 60 job_is "$id" reason HeldRetries &&
	wait_for 60 job_is "$two" reason HeldRetries && gpuq nodes --json >out && ! grep "\"suspect\"" out &&
	! grep -q node.refused_pod gpuqd.log && gpuq cancel "$id" "$two"
'

test_expect_success 'credentials that have expired are named as such: in status, its JSON, doctor' '
	fault "on ANY status=401" close-watches && wait_for 60 is_stale &&
	gpuq status --json >status.json && says status.json "credentials of gpuqd have expired" &&
	json cluster.stale_why <status.json >why && says why "^401" && gpuq status >out && says out "credentials of gpuqd have expired" &&
	{ gpuq doctor >out || :; } && says out "credentials of gpuqd have expired"
'

test_expect_success 'as well by a daemon that starts with them' '
	kill_gpuqd && start_gpuqd --config gpuqd.yaml --kubeconfig "$PWD/kubeconfig" &&
	wait_for 30 eval "gpuq status | grep \"credentials of gpuqd have expired\""
'

test_expect_success 'they are good again: what was submitted meanwhile runs' '
	id=$(fake_job run=100ms -g 1) && sleep 1 && job_is "$id" state PENDING && fault clear && wait_for 60 is_fresh &&
	exits 0 gpuq wait "$id" && test "$(gpuq status --json | json cluster.stale_why)" = null
'

no_harm_was_done

test_done
