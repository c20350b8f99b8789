#!/bin/sh
test_description='a kubelet that lacks an adapter its node offers: the job runs elsewhere, the node goes on'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

test_expect_success 'two nodes with adapters, of which the first has a dead plugin for them' '
	start_fake --nodes 2 --gpus 8 && offers node-0000 "\"rdma/hca\": \"4\"" && offers node-0001 "\"rdma/hca\": \"1\"" &&
	api PATCH /nodes/node-0000 "{\"metadata\": {\"annotations\": {\"gpuq.test/broken\": \"rdma/hca\"}}}" >/dev/null && start_fake_gpuqd &&
	wait_for 60 node_is node-0000 "resources.rdma/hca.total" 4
'

test_expect_success 'its refusal corrects what is believed of the adapter there, and the job runs on the other node' '
	echo "{command: [a], image: test, gpus: 4, resources: {rdma/hca: 1}, annotations: {gpuq.test/hang: \"true\"}}" >h.yaml &&
	h=$(submit h.yaml) && h=$(submit h.yaml) && wait_for 60 says gpuqd.log "node.short node=node-0000 resource=rdma/hca have=0" &&
	wait_for 60 eval "[ \"\$(gpuq queue -h -t R -o NODELIST)\" = node-0001 ]" &&
	wait_for 60 job_is "$h" reason Resources && job_is "$h" reasons.0.object rdma/hca
'

test_expect_success 'jobs that do not ask for it run there at once: the node is not suspect' '
	! node_is node-0000 state suspect && p=$(fake_job hang=true -g 8) && job_becomes "$p" RUNNING && job_is "$p" pods.0.node node-0000 &&
	job_is "$p" attempt 0 && all_gone
'

# To the fake cluster's audit, what the kubelet refuses there is an over-commitment.
test_expect_success 'nothing ran twice' '
	test "$(fake /fake/audit duplicates)" = 0 && test "$(fake /fake/audit double_successes)" = 0 && stop_gpuqd
'

test_done
