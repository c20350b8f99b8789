#!/bin/sh
test_description='on a real apiserver: gpuqd is killed under load; every pod is accounted for'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube-shared.sh"

test_expect_success 'start' '
	make_namespace && make_nodes n1 n2 gpus=8 && cluster watch && start_kube_gpuqd &&
	wait_for 30 eval "test \$(gpuq nodes --json | json name | grep -c \"$test_namespace\") = 2"
'

test_expect_success 'jobs are submitted while the daemon dies again and again' '
	: >ids && for n in 1 2 3 4 5 6; do
		for k in 1 2 3 4 5 6; do
			pod_job "j$n$k" $((k % 3 + 1)) gpuq.test/run=150ms >>ids || return 1
		done
		case $n in
		2 | 4) sleep 0.1 ;;
		3) wait_for 20 eval "test \$(gpuq queue -h -t R | wc -l) -ge 1" ;;
		esac
		kill_gpuqd && start_kube_gpuqd || return 1
	done && test "$(sort -u ids | wc -l)" = 36
'

test_expect_success 'all of them end well, each in one attempt' '
	gpuq wait $(cat ids) && for id in $(cat ids); do
		job_is "$id" state COMPLETED && job_is "$id" attempt 0 || return 1
	done
'

test_expect_success 'the cluster has one pod of each and no other' '
	kube list "$test_namespace/pods" metadata.labels.[gpuq.io/job] | sort -n >seen && sort -n ids >want && test_cmp want seen
'

test_expect_success 'no node and no device was ever given twice' '
	cluster unwatch && stop_gpuqd
'

test_done
