#!/bin/sh
test_description='a job that no pool could hold is told which comes nearest, at submission and by why'
. "$(dirname "$0")/lib.sh"

# pool NAME FLAVOR GPUS CPUS
pool() {
	echo "- {name: $1, flavor: $2, selector: {p: $1}, provisioning: {kind: request, class: c, max_nodes: 2," \
		"machine: {gpus: $3, cpus: $4, memory: 64Gi, labels: {p: $1}}}}"
}

# near EXPECTED option...: what a job with these options is told; - = nothing
near() {
	near_text=$1
	shift
	gpuq submit --parsable "$@" --wrap true >id 2>warned && id=$(cat id) && wait_for 60 eval "test \$(job $id reason) != null" &&
		gpuq why "$id" >why && gpuq why --json "$id" >why.json && gpuq cancel "$id" || return 1
	if [ "$near_text" = - ]; then
		! grep "machine has" warned && ! grep -q "^Nearest" why && test "$(json waiting.nearest <why.json)" = null
	else
		says warned "no node can hold a pod.*$near_text\): it is pending" && says why "^Nearest +$near_text\$" &&
			json waiting.nearest.text <why.json >text && says text "^$near_text\$" && says why Unsatisfiable
	fi
}

test_expect_success 'the largest machine for 16 devices, of any flavor and of one' '
	{
		printf "version: 1\nqueues: [{name: q}]\nflavors: [{name: t4}, {name: a100}]\npools:\n" &&
		pool dws-t4 t4 4 16 && pool dws-a100 a100 8 96
	} >site.yaml && start_gpuqd --site "$PWD/site.yaml" &&
	near "pool dws-a100.s machine has 8 gpus" -g 16 --flavor t4,a100 &&
	near "pool dws-t4.s machine has 4 gpus" -g 16 --flavor t4 && test "$(json waiting.nearest.pool <why.json)" = dws-t4
'

test_expect_success 'what lacks least is nearest: by cores, by memory, by several' '
	near "pool dws-a100.s machine has 96 cpus" -g 1 -c 200 --flavor t4,a100 &&
	near "pool dws-a100.s machine has 8 gpus, 64Gi of memory" -g 9 --mem 1Ti --flavor t4,a100
'

test_expect_success 'nothing is said where a pool could hold it' '
	near - -g 8 --flavor a100
'

test_done
