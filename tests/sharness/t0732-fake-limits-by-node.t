#!/bin/sh
test_description='limits count what a job is charged on the nodes that it may use, and no more is started than they allow'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# part KEYS...: a job of parts that runs until it is cancelled
part() {
	{
		printf 'image: test\ncommand: [a]\nannotations: {gpuq.test/hang: "true"}\n' && printf '%s\n' "$@"
	} >part.yaml && submit part.yaml
}

on_each() {
	for n in "$@"; do echo "$n"; done >expected && gpuq status --json "$id" | /usr/bin/python3 -c '
import json, sys
for p in sorted(json.load(sys.stdin)["pods"], key=lambda p: p["node"]): print(p["node"])' | diff expected -
}

test_expect_success 'a job that the limit leaves enough on the only node that it may use runs there' '
	start_fake --nodes 2 --gpus 4 &&
	offers node-0000 "\"nvidia.com/gpu\": \"8\"" "\"nvidia.com/gpu.sharing-strategy\": \"mps\", \"nvidia.com/gpu.replicas\": \"4\"" &&
	offers node-0001 "\"nvidia.com/gpu\": \"10\"" "\"kind\": \"ts\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\", \"nvidia.com/gpu.replicas\": \"10\"" &&
	cat >site.yaml <<-END &&
	version: 1
	queues: [{name: default}, {name: qb, limit: 1}]
	END
	start_fake_gpuqd --site site.yaml && wait_for 60 node_is node-0000 gpus 2 && wait_for 60 node_is node-0001 gpus 1 &&
	first=$(part "queue: qb" "gpus: 0.2" "pods: 3" "nodes: [node-0000]") && job_becomes "$first" RUNNING && job_is "$first" gpus 0.75 &&
	id=$(part "queue: qb" "gpus: 0.01" "pods: 2" "node_selector: {kind: ts}") && job_becomes "$id" RUNNING && job_is "$id" gpus 0.2
'

test_expect_success 'without the selector it goes to that node as well; what is too much there too is told by the least' '
	gpuq cancel "$id" && job_becomes "$id" CANCELLED && id=$(part "queue: qb" "gpus: 0.01" "pods: 2") && job_becomes "$id" RUNNING &&
	job_is "$id" gpus 0.2 && on_each node-0001 node-0001 &&
	id=$(part "queue: qb" "gpus: 0.01" "pods: 2") && wait_for 60 job_is "$id" reasons.0.code LimitQueue && job_is "$id" reasons.0.need 0.2 && job_is "$id" reasons.0.have 0.05
'

no_harm_was_done

test_done
