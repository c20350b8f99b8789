#!/bin/sh
test_description='nodes that are cut into MIG instances when pending jobs request profiles that no node has'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/mig.sh"

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

# site TIMEOUT AGAIN
site() {
	echo "{version: 1, pools: [{name: m, mig: {manager: true, layouts: [all-1g.10gb, all-2g.20gb, all-3g.40gb, all-4g.40gb, all-7g.80gb, all-disabled], timeout: $1, again: $2}}]}" >site.yaml
	gpuq apply -f site.yaml
}

node_is() { # NODE KEY WANT
	node_got=$(gpuq nodes --json | grep "\"name\":\"$1\"" | json "$2")
	[ "$node_got" = "$3" ] || { echo "$2 of $1 is $node_got, not $3"; return 1; }
}

label_of() { # NODE: its layout in the cluster
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/nodes/$1" | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["metadata"].get("labels", {}).get("nvidia.com/mig.config", "-"))'
}

label_is() {
	[ "$(label_of "$1")" = "$2" ] || { echo "the label of $1 is $(label_of "$1")"; return 1; }
}

all_idle() {
	[ "$(gpuq nodes --json | grep -c "\"state\":\"idle\"")" = 2 ]
}

test_expect_success 'layouts are all-PROFILE or all-disabled, and need a manager' '
	start_fake && start_fake_gpuqd && manager "$PWD/kubeconfig" &&
	for bad in "manager: true" "manager: true, layouts: [all-balanced]" "layouts: [all-1g.10gb]" "manager: true, layouts: [all-1g.10gb, all-1g.10gb]"; do
		echo "{version: 1, pools: [{name: m, mig: {$bad}}]}" >bad.yaml && exits 1 gpuq apply -f bad.yaml && grep "bad.yaml:1:" err || return 1
	done && grep "each layout once" err &&
	echo "{version: 1, pools: [{name: m, sharing: whole, mig: {manager: true, layouts: [all-1g.10gb]}}]}" >bad.yaml && exits 1 gpuq apply -f bad.yaml && grep "expected auto or mig" err
'

test_expect_success 'AC-NV-4: twelve jobs of one instance have an idle node cut, and wait for it; the one with a pod stays as it is' '
	site 15m 1h && busy=$(fake_job hang=true -g 1 -w node-0000) && job_becomes "$busy" RUNNING && does sleep &&
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do fake_job hang=true --mig 1g.10gb 2>>warned || return 1; done >ids && first=$(head -n 1 ids) &&
	wait_for 60 label_is node-0001 all-1g.10gb && wait_for 60 says_cut "$first" node-0001 && job_is "$first" reason MigLayout &&
	node_is node-0001 state reserved && cut_is node-0001 state set && node_is node-0001 free_gpus 0 && gpuq status --json >status.out &&
	test "$(json devices.reserved <status.out)" = 4 && test "$(json devices.free <status.out)" = 3 && gpuq nodes -o NODE,NOTE >nodes.out && grep "node-0001.*all-1g.10gb is being set" nodes.out &&
	late=$(fake_job hang=true -g 1 -w node-0001) && wait_for 60 job_is "$late" reason NodesUnavailable && label_is node-0000 - && gpuq cancel "$late" && does obey &&
	for id in $(cat ids); do job_becomes "$id" RUNNING || return 1; done && offers node-0001 1g.10gb 28 && cut_is node-0001 state done && node_is node-0001 state mixed &&
	whose=$(gpuq events --json | grep node.cut | head -n 1 | json job) && gpuq events "$whose" >events.out && grep "node.cut.*node-0001.*all-1g.10gb.*set" events.out && grep "node.cut.*node-0001.*done" events.out
'

test_expect_success 'a profile that no idle node could have waits; once one is idle it is cut again, as the demand is another' '
	j=$(fake_job hang=true --mig 3g.40gb 2>>warned) && wait_for 60 job_is "$j" reason Resources && gpuq cancel $(cat ids) &&
	job_becomes "$j" RUNNING && job_is "$j" pods.0.node node-0001 && offers node-0001 3g.40gb 8 && gpuq cancel "$j"
'

test_expect_success 'AC-NV-4: a manager that fails: the label is put back, the node says so, the job waits, and it is not tried again within the hour' '
	does "all-2g.20gb fail" && j=$(fake_job hang=true --mig 2g.20gb 2>>warned) && wait_for 60 cut_is node-0001 state failed && label_is node-0001 all-3g.40gb &&
	gpuq events "$j" >events.out && grep "node.cut.*node-0001.*failed.*the MIG manager failed" events.out &&
	gpuq nodes -o NODE,NOTE >nodes.out && grep "node-0001.*all-2g.20gb failed: the MIG manager failed" nodes.out && wait_for 60 job_is "$j" reason Resources &&
	k=$(fake_job hang=true --mig 3g.40gb) && job_becomes "$k" RUNNING && gpuq cancel "$k" "$busy" && wait_for 60 cut_is node-0000 state failed && label_is node-0000 - &&
	wait_for 60 eval "gpuq why \"$j\" >why.out; grep \"MIG layout: node node-000[01] is not cut again before\" why.out" && job_is "$j" reason MigLayout &&
	test "$(n_set node-0001 all-2g.20gb)" = 1 && test "$(n_set node-0000 all-2g.20gb)" = 1
'

test_expect_success 'when the time is over it is tried again; whole devices come back for a job that no node could hold' '
	does obey && site 15m 1s && job_becomes "$j" RUNNING && offers "$(gpuq queue -h -o NODELIST -j "$j")" 2g.20gb 12 && gpuq cancel "$j" && site 15m 1h &&
	j=$(fake_job hang=true -N 2 --gpus-per-node=4 2>>warned) && job_becomes "$j" RUNNING && gpuq cancel "$j"
'

test_expect_success 'a manager that never ends, or ends without anything: the label is put back after the timeout' '
	site 2s 1h && does sleep && j=$(fake_job hang=true --mig 2g.20gb 2>>warned) && wait_for 60 eval "gpuq nodes -o NODE,NOTE | grep \"did not succeed within 2s\"" &&
	gpuq cancel "$j" && does lie && j=$(fake_job hang=true --mig 1g.10gb 2>>warned) &&
	wait_for 60 eval "gpuq nodes -o NODE,NOTE | grep \"did not offer it within 2s\"" && gpuq cancel "$j" &&
	wait_for 60 all_idle
'

# killed_at PLACE PROFILE: the daemon ends there, and its successor goes on
killed_at() {
	kill_gpuqd && GPUQ_FAILPOINT="$1=kill" && export GPUQ_FAILPOINT && start_fake_gpuqd || return 1
	fake_job hang=true --mig "$2" >submit.out 2>&1
	wait_for 60 gpuqd_is_dead
	killed_status=$?
	unset GPUQ_FAILPOINT
	[ $killed_status = 0 ] && start_fake_gpuqd && killed_job=$(gpuq queue -h -o JOBID | tr -d " ") || return 1
	# It may have ended before the submission was on disk.
	[ -n "$killed_job" ] || killed_job=$(fake_job hang=true --mig "$2")
}

put_back() { # PROFILE
	gpuq nodes -o NODE,NOTE >nodes.out && ! grep being nodes.out && grep "all-$1 failed" nodes.out
}

# runs_after PLACE PROFILE
runs_after() {
	killed_at "$1" "$2" && job_becomes "$killed_job" RUNNING && gpuq cancel "$killed_job" && wait_for 60 eval "test -z \"\$(gpuq queue -h)\""
}

test_expect_success FAILPOINTS 'a daemon that is killed at any step goes on there' '
	does obey && site 15m 0s && runs_after cut.decided 1g.10gb && runs_after cut.label 2g.20gb && runs_after cut.labelled 3g.40gb
'

test_expect_success FAILPOINTS '... also where the layout before is to be restored' '
	does fail && site 15m 1h && for step in cut.label:2 cut.labelled:2; do
		case $step in cut.label:2) profile=4g.40gb ;; *) profile=7g.80gb ;; esac
		killed_at $step $profile && wait_for 60 put_back $profile && gpuq cancel "$killed_job" || return 1
	done
'

test_expect_success 'no node with a pod was ever cut' '! grep busy manager.log'

no_harm_was_done
test_done
