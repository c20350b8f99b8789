#!/bin/sh
test_description='a pool whose nodes cannot be requested: what a job that needs them is told'
. "$(dirname "$0")/lib.sh"

test_expect_success 'the reason has the words of the cluster, doctor the remedy' '
	cat >site.yaml <<-END &&
	version: 1
	queues: [{name: q}]
	flavors: [{name: t4, match: {product: "*T4*"}}]
	pools:
	- name: dws
	  selector: {pool: dws}
	  flavor: t4
	  provisioning: {kind: request, class: c, machine: {gpus: 1, labels: {pool: dws}}, max_nodes: 2}
	END
	start_gpuqd --site "$PWD/site.yaml" && id=$(sh_job true -g 1 --flavor t4) &&
	wait_for 60 job_is "$id" reason NodesUnavailable && job_is "$id" reasons.0.object dws &&
	job_is "$id" reasons.0.message "this cluster takes no requests for nodes" &&
	gpuq why "$id" >out && says out "this cluster takes no requests for nodes" && gpuq status >out && says out "dws 0 of 2, off" &&
	{ gpuq doctor >out || :; } && says out "requests .*get no nodes by requests"
'

test_expect_success 'without its provisioning nothing is said of requests' '
	printf "version: 1\npools: [{name: dws, provisioning: {kind: none}}]\n" | gpuq apply -f - &&
	wait_for 60 job_is "$id" reason Unsatisfiable && job_is "$id" reasons.0.message null && gpuq cancel "$id" && stop_gpuqd
'

# Flavors are matched by product there: such a pool has those of its nodes.
test_expect_success 'a pool that names no flavor, beside flavors' '
	printf "version: 1\npools: [{name: cloud, selector: {c: c}}]\n" >cloud.yaml && start_gpuqd --gpus 2 && gpuq apply -f cloud.yaml &&
	gpuq pools >out && says out "^cloud " && gpuq pools --json cloud >pool.json && test "$(json flavor <pool.json)" = null && test "$(json price <pool.json)" = null &&
	gpuq nodes -s && gpuq status && id=$(sh_job true -g 1 --flavor t4 -t 8d) && gpuq why "$id" && gpuq cancel "$id" &&
	gpuq submit --dry-run -g 1000 --flavor t4 --wrap true && gpuq plan -g 1 --flavor t4 --time 1h -- true && gpuq plan -g 1 --time 1h -- true &&
	gpuq reserve r -t 1h --pool cloud --start now+2h && gpuq reservations && gpuq export >exported.yaml && says exported.yaml "name: cloud" &&
	gpuq export --scenario >out && gpuq report && stop_gpuqd
'

# grown LABEL: a pool that grows, whose nodes have that one
grown() {
	printf "version: 1\nflavors: [{name: t4, match: {product: \"*T4*\"}}]\npools:\n- {name: z1, flavor: t4, selector: {pool: z1}, provisioning: {kind: request, class: c, max_nodes: 2, machine: {gpus: 1, labels: {pool: z1, zone: $1}}}}\n"
}

test_expect_success 'the labels that its nodes would have count: for the warning at submit, and for what why names' '
	start_gpuqd --gpus 2 && grown a | gpuq apply -f - && gpuq submit --dry-run -g 1 --flavor t4 --constraint zone=a --wrap true 2>out && test_must_fail grep zone out &&
	gpuq submit --dry-run -g 1 --flavor t4 --constraint zone=c --wrap true 2>out && says out "no node has a label that the job asks for: zone=c .there are: a." &&
	id=$(sh_job true -g 1 --flavor t4 --constraint zone=c) && wait_for 60 job_is "$id" reason Unsatisfiable && gpuq why "$id" >out &&
	says out "zone=c.*there are: a" && test_must_fail grep "of flavor t4" out && gpuq cancel "$id"
'

test_expect_success 'plan of a single flavor names the pool that would request nodes' '
	gpuq plan -g 1 --flavor t4 --time 1h --json -- true >plan.json && test "$(json flavors.0.pool <plan.json)" = z1 &&
	gpuq plan -g 1 --flavor default --time 1h --json -- true >plan.json && test_must_fail grep "\"flavors\"" plan.json
'

test_expect_success 'a scenario has the pools that grow, and requests their nodes' '
	id=$(sh_job true -g 1 --flavor t4 --constraint zone=a) && gpuq export --scenario >now.yaml && says now.yaml "pools:" && says now.yaml "name: z1" &&
	"$test_build/gpuqd/gpuq-sim" run now.yaml >out && says out "Provisioning" && test_must_fail grep Unsatisfiable out && gpuq cancel "$id"
'

test_expect_success 'max_run of a class that takes nodes away is longer than a boot' '
	printf "version: 1\npools: [{name: z1, provisioning: {class: queued-provisioning.gke.io, kind: request, max_nodes: 2, max_run: 5m, machine: {gpus: 1, labels: {pool: z1}}}}]\n" >short.yaml &&
	exits 1 gpuq apply -f short.yaml && says err "short.yaml:2:.*max_run: expected more than 10m" && stop_gpuqd
'

test_done
