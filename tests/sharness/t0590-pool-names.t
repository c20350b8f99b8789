#!/bin/sh
test_description='what scripts and scalers read of pools: the names in gpuq-json(5), in status, pools and a job'
. "$(dirname "$0")/lib.sh"

described() {
	section=$1
	shift
	gpuq "$@" >json.out && /usr/bin/python3 "$test_source/tests/sharness/check_json.py" "$test_source/man/gpuq-json.5" "$section" <json.out
}

test_expect_success 'status has the nodes that autoscalers are to make, by pool' '
	cat >site.yaml <<-END &&
	version: 1
	queues: [{name: q}]
	flavors: [{name: t4, match: {product: "*T4*"}}]
	pools:
	- {name: fixed, selector: {pool: fixed}}
	- {name: dws, selector: {pool: dws}, flavor: t4,
	   provisioning: {kind: request, class: c, machine: {gpus: 1, labels: {pool: dws}}, max_nodes: 2}}
	- {name: a_time, selector: {pool: auto}, flavor: t4,
	   provisioning: {kind: autoscaler, machine: {gpus: 4, labels: {pool: auto}}, min_nodes: 1, max_nodes: 3}}
	END
	start_gpuqd --site "$PWD/site.yaml" && described Status status --json && test "$(json unmet_nodes <json.out)" = "{\"a_time\": 0}"
'

test_expect_success 'pools have min, max and last_failure' '
	described Pool pools --json && gpuq pools --json a_time >out && test "$(json min <out)" = 1 && test "$(json max <out)" = 3 &&
	test "$(json max_nodes <out)" = 3 && test "$(json last_failure <out)" = null && gpuq pools --json dws >out && test "$(json min <out)" = 0 &&
	gpuq pools --json fixed >out && test "$(json min <out)" = null && test "$(json max <out)" = null
'

test_expect_success 'every column has its name' '
	gpuq pools -o NAME,FLAVOR,NODES,ASKED,MAX,PRICE,REQUESTS,LAST_FAILURE dws >out &&
	says out "^NAME +FLAVOR +NODES +ASKED +MAX +PRICE +REQUESTS +LAST_FAILURE" && says out "^dws +t4 +0 +0 +2 +- +0 +-"
'

test_done
