#!/bin/sh
test_description='nodes that go, lose devices, or run pods of others'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

test_expect_success 'start' '
	start_fake && start_fake_gpuqd && test "$(free_gpus)" = 8
'

test_expect_success 'pods of others take what they take' '
	fault "foreign node-0000 gpus=3 name=f1" && wait_for 60 eval "test \$(free_gpus) = 5" &&
	a=$(fake_job hang=true -g 4) && job_becomes "$a" RUNNING && job_is "$a" pods.0.node node-0001 &&
	b=$(fake_job hang=true -g 2) && wait_for 60 job_is "$b" reason Resources &&
	fault "delete-pod foreign/f1" && job_becomes "$b" RUNNING && job_is "$b" pods.0.node node-0000 &&
	gpuq cancel "$a" "$b" && wait_for 60 eval "test \$(free_gpus) = 8"
'

test_expect_success 'a node loses devices: nothing is placed on what is not there' '
	fault "devices node-0000=2" "devices node-0001=1" && wait_for 60 eval "test \$(free_gpus) = 3" &&
	a=$(fake_job hang=true -g 2) && b=$(fake_job hang=true -g 2) && job_becomes "$a" RUNNING &&
	job_is "$a" pods.0.node node-0000 && wait_for 60 job_is "$b" reason Resources && job_is "$b" state PENDING
'

test_expect_success 'it gets them back' '
	fault "devices node-0000=4" "devices node-0001=4" && job_becomes "$b" RUNNING && job_is "$a" state RUNNING &&
	job_is "$a" attempt 0 && gpuq cancel "$a" "$b" && wait_for 60 eval "test \$(free_gpus) = 8"
'

test_expect_success 'devices that go while a job has them: it runs on, and no more start there' '
	a=$(fake_job hang=true -g 4) && job_becomes "$a" RUNNING && node=$(job "$a" pods.0.node) &&
	fault "devices $node=2" && wait_for 60 eval "gpuq nodes --json | grep \"\\\"$node\\\"\" | json free_gpus | grep -qx 0" &&
	b=$(fake_job run=1s -g 2) && exits 0 gpuq wait "$b" && job_is "$a" state RUNNING && job_is "$a" attempt 0 &&
	fault "devices $node=4" && gpuq cancel "$a" && wait_for 60 eval "test \$(free_gpus) = 8"
'

test_expect_success 'a node goes down and comes back: nothing is placed on it meanwhile' '
	fault "node-down node-0000" && wait_for 60 eval "gpuq nodes --json | grep node-0000 | json state | grep -qx down" &&
	a=$(fake_job run=300ms -g 4) && exits 0 gpuq wait "$a" && b=$(fake_job hang=true -g 4) && job_becomes "$b" RUNNING &&
	job_is "$b" pods.0.node node-0001 && c=$(fake_job run=300ms -g 4) && job_is "$c" state PENDING &&
	fault "node-up node-0000" && exits 0 gpuq wait "$c" && gpuq cancel "$b" && job_becomes "$b" CANCELLED
'

test_expect_success 'a node is gone with the job on it: another attempt, at nobody'"'"'s cost' '
	a=$(fake_job run=4s -g 4) && job_becomes "$a" RUNNING && node=$(job "$a" pods.0.node) &&
	fault "node-gone $node" && wait_for 90 job_is "$a" attempt 1 && exits 0 gpuq wait "$a" &&
	job "$a" pods.0.node >other && test "$(cat other)" != "$node" && fault "node-add $node gpus=4" &&
	wait_for 60 eval "test \$(free_gpus) = 8"
'

test_expect_success 'a node that rejects: it is left alone, and the job runs elsewhere or later' '
	a=$(fake_job reject=true --retry=0 -g 1) && wait_for 60 eval "test \$(job $a attempt) -ge 1" &&
	job_is "$a" exit_code null && gpuq cancel "$a" && job_becomes "$a" CANCELLED
'

test_expect_success 'the quota of the namespace: the job waits for it' '
	/usr/bin/curl -sSf -H "Content-Type: application/json" --data-binary "{\"apiVersion\": \"v1\", \"kind\": \"ResourceQuota\",
		\"metadata\": {\"name\": \"q\"}, \"spec\": {\"hard\": {\"requests.nvidia.com/gpu\": \"2\"}}}" \
		"http://127.0.0.1:$fake_port/api/v1/namespaces/default/resourcequotas" >/dev/null &&
	a=$(fake_job hang=true -g 2) && job_becomes "$a" RUNNING && b=$(fake_job run=300ms -g 2) &&
	wait_for 60 job_is "$b" reason NamespaceQuota && job_is "$b" state PENDING &&
	gpuq cancel "$a" && exits 0 gpuq wait "$b"
'

test_expect_success 'a pod that somebody deletes: another attempt' '
	a=$(fake_job run=3s) && job_becomes "$a" RUNNING && fault "delete-pod $(job "$a" pods.0.name)" &&
	wait_for 60 job_is "$a" attempt 1 && exits 0 gpuq wait "$a"
'

no_harm_was_done
test_done
