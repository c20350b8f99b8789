#!/bin/sh
test_description='claims on a cluster that answers badly'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

cat >site.yaml <<'END'
version: 1
qos:
- {name: quick, grace: 1s}
queues:
- {name: prod, quota: 4}
- {name: batch, quota: 4}
END

node_of() {
	job "$1" promise.pods.0.node
}

test_expect_success 'start; one queue has it all' '
	start_fake && start_fake_gpuqd --site "$PWD/site.yaml" &&
	a=$(fake_job hang=true --queue batch --qos quick -g 4) && b=$(fake_job hang=true --queue batch --qos quick -g 4) &&
	job_becomes "$a" RUNNING && job_becomes "$b" RUNNING
'

test_expect_success 'a victim that does not go: its node is left alone, and the claim does not wait for it' '
	fault "on DELETE pods every=1 status=503" && claimant=$(fake_job hang=true --queue prod -g 4) &&
	wait_for 60 job_is "$claimant" reason Victims && first=$(node_of "$claimant") &&
	wait_for 90 eval "gpuq nodes --json | grep \"\\\"$first\\\"\" | json state | grep -qx suspect" &&
	job_is "$claimant" promise null && says gpuqd.log "pod.overdue" && job_is "$claimant" state PENDING
'

test_expect_success 'when it can go after all, the node is used again and the claimant starts' '
	fault clear && job_becomes "$claimant" RUNNING && says gpuqd.log "node.unstuck" && job_is "$claimant" attempt 0 && wait_for 60 eval "test \$(n_pods $claimant) = 1" && gpuq cancel "$claimant" "$a" "$b"
'

test_expect_success 'a job whose pod is deleted by others keeps its turn: nothing behind it starts on its places' '
	wait_for 60 eval "test \$(free_gpus) = 8" && a=$(fake_job hang=true -g 4 --queue prod) && b=$(fake_job hang=true -g 4 --queue prod) &&
	job_becomes "$a" RUNNING && job_becomes "$b" RUNNING && behind=$(fake_job hang=true -g 4 --queue prod) &&
	wait_for 60 eval "job $behind reason | grep -qv null" && fault "delete-pod default/$(job "$a" pods.0.name) grace=0" &&
	wait_for 60 job_is "$a" attempt 1 && job_becomes "$a" RUNNING && job_is "$behind" state PENDING &&
	test "$(n_pods "$behind")" = 0 && gpuq cancel "$a" "$b" "$behind"
'

test_expect_success 'what is taken back lies apart: one that may stay is moved, over a kill as well' '
	cat >apart.yaml <<-\END &&
	version: 1
	queues:
	- {name: prod, quota: 4}
	- {name: batch, quota: 4}
	- {name: guest, quota: 0}
	END
	gpuq apply -f apart.yaml && wait_for 60 eval "test \$(free_gpus) = 8" &&
	ids= && for queue in batch guest batch guest; do
		one=$(fake_job hang=true --queue $queue --qos quick -g 2) && job_becomes "$one" RUNNING && ids="$ids $one" || return 1
	done && set -- $ids && fault "on DELETE pods every=1 status=503" && claimant=$(fake_job hang=true --queue prod -g 4) &&
	wait_for 60 job_is "$claimant" reason Victims && kill_gpuqd && fault clear && start_fake_gpuqd && job_becomes "$claimant" RUNNING &&
	wait_for 60 eval "job_is $1 state RUNNING && job_is $3 state RUNNING" && job_is "$2" state PENDING && job_is "$4" state PENDING
'

no_harm_was_done
test_done
