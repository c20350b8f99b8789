#!/bin/sh
test_description='start: bind: a pod is created without a node and bound; refused, its job waits without devices'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

test_expect_success 'each pod is created without a node, and a Binding gives it the one of its placement' '
	start_fake && start_fake_gpuqd && echo "{version: 1, queues: [{name: default, start: bind}]}" | gpuq apply -f - &&
	id=$(fake_job hang=true -g 2 --nodes 2) && job_becomes "$id" RUNNING && job_is "$id" attempt 0 && n=$(n_pods "$id") && test "$n" = 2 &&
	test "$(grep -c "\"verb\":\"bind\",\"resource\":\"pods\"" audit)" = 2 && gpuq cancel "$id" && wait_for 60 eval "test \$(free_gpus) = 8"
'

test_expect_success 'whatever the cluster refuses the binding for, its jobs wait as refused, without devices' '
	fault "on POST pods/binding status=403 reason=Forbidden message=\"not bound because it is being terminated\"" && id=$(fake_job hang=true -g 4) && wait_for 60 job_is "$id" reason ClusterRefused &&
	job_is "$id" reasons.0.object pods/binding && wait_for 60 eval "test \$(free_gpus) = 8"
'

test_expect_success 'and start once it is there' '
	fault clear && gpuq hold "$id" && gpuq release "$id" && wait_for 120 job_is "$id" state RUNNING && gpuq cancel "$id"
'

no_harm_was_done

test_done
