#!/bin/sh
test_description='an apiserver that forgets, goes away, comes back as it was, and has strange pods'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

test_expect_success 'start' '
	start_fake && start_fake_gpuqd
'

test_expect_success 'history is forgotten: the watch begins anew' '
	a=$(fake_job run=2s) && job_becomes "$a" RUNNING && fault "on WATCH gone count=2" compact close-watches &&
	exits 0 gpuq wait "$a" && job_is "$a" attempt 0 && test "$(n_pods "$a")" = 1
'

test_expect_success 'pages of a list that die half-way' '
	fault clear "on LIST pods gone count=2" compact close-watches &&
	a=$(fake_job run=300ms) && exits 0 gpuq wait "$a" && test "$(n_pods "$a")" = 1
'

test_expect_success 'one byte after the other' '
	fault clear "on WATCH slow-bytes=400/50ms" "on LIST slow-bytes=2000/20ms" close-watches &&
	a=$(fake_job run=300ms) && exits 0 gpuq wait "$a" && test "$(n_pods "$a")" = 1
'

for kind in nul hugeint big deep badutf8 types; do
	test_expect_success "a pod that is hard to read ($kind) is skipped, all others are seen" '
		fault clear "poison pod kind=$kind name=poison-$kind" close-watches &&
		a=$(fake_job run=300ms) && exits 0 gpuq wait "$a" && test "$(n_pods "$a")" = 1
	'
done

test_expect_success 'and so after a restart, with all of them in the list' '
	a=$(fake_job hang=true -g 2) && job_becomes "$a" RUNNING && kill_gpuqd && start_fake_gpuqd &&
	job_is "$a" state RUNNING && b=$(fake_job run=300ms) && exits 0 gpuq wait "$b" &&
	gpuq cancel "$a" && job_becomes "$a" CANCELLED
'

test_expect_success 'the apiserver goes away: jobs are taken, and what is known is marked as old' '
	run=$(fake_job run=500ms) && job_becomes "$run" RUNNING && fault clear "down 25s" &&
	id=$(fake_job run=300ms) && wait_for 60 is_stale && gpuq status >out && says out "stale" &&
	gpuq status --json | json cluster.stale_since >since && says since "^20[0-9]*-.*Z" &&
	id2=$(fake_job run=300ms --key=k) && gpuq nodes >out && says out node-0001
'

test_expect_success 'it comes back: they run, once' '
	exits 0 gpuq wait "$run" "$id" "$id2" && wait_for 60 is_fresh &&
	for j in "$run" "$id" "$id2"; do test "$(n_pods "$j")" = 1 || return 1; done
'

test_expect_success 'its store is restored to an earlier state: a pod that is not there any more is tried again' '
	before=$(fake /fake/state resourceVersion) && a=$(fake_job hang=true) && job_becomes "$a" RUNNING && fault "rewind to=$before" &&
	wait_for 90 job_is "$a" attempt 1 && job_becomes "$a" RUNNING && gpuq cancel "$a" && job_becomes "$a" CANCELLED &&
	wait_for 60 is_fresh
'

no_harm_was_done
test_done
