#!/bin/sh
test_description='streams that stay open and say nothing (takes about 100 s: so long a silence is normal)'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

test_expect_success 'what happens during the silence is heard of in the end' '
	echo "on WATCH half-open after=4 no-bookmarks count=2" >script && start_fake --script "$PWD/script" &&
	start_fake_gpuqd && a=$(fake_job run=1s) && b=$(fake_job hang=true -g 2) &&
	wait_for 200 job_is "$a" state COMPLETED && job_becomes "$b" RUNNING && wait_for 60 is_fresh &&
	gpuq cancel "$b" && job_becomes "$b" CANCELLED && test "$(n_pods "$a")" = 1
'

no_harm_was_done
test_done
