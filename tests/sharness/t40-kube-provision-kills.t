#!/bin/sh
test_description='real control plane: a daemon that is killed at any step of a request for nodes makes no second one'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/provision.sh"

pool big big 8 2 | site
cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/provisioning.yaml"

test_expect_success 'the kind, an autoscaler, a daemon' '
	printf "finished_pod_keep: 1s\n" >gpuqd.yaml && crd v1 && autoscaler v1 &&
	start_kube_gpuqd --config "$PWD/gpuqd.yaml" --site "$PWD/site.yaml"
'

again() {
	start_kube_gpuqd --config "$PWD/gpuqd.yaml"
}

# one_each JOB ATTEMPTS: its requests were made once each, and there were so many
one_each() {
	none_twice && n_of "$1" "$2"
}

# killed_at PLACE WHAT ATTEMPTS [WHAT-AFTER]: the daemon ends there, perhaps before the submission is answered,
# and its successor goes on
killed_at() {
	becomes "$2" && kill_gpuqd && GPUQ_FAILPOINT="$1=kill" && export GPUQ_FAILPOINT && again || return 1
	grow 'gpus: 8\ntime: 1h' >submit.out 2>&1
	wait_for 60 gpuqd_is_dead
	killed_status=$?
	unset GPUQ_FAILPOINT
	[ $killed_status = 0 ] && becomes "${4-serve}" && again || return 1
	# It may have ended before the submission was on disk.
	[ -n "$(gpuq queue -h -o JOBID)" ] || grow 'gpus: 8\ntime: 1h' >submit.out
	killed_job=$(gpuq queue -h -o JOBID | tr -d ' ') &&
		job_becomes "$killed_job" RUNNING 90 && n_pods "$killed_job" 1 && gpuq cancel "$killed_job" &&
		wait_for 60 no_requests && wait_for 60 no_nodes && one_each "$killed_job" "$3"
}

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

# From the decision to the nodes: PLACE of the program, what becomes of the request, requests in all.
for step in \
	ask.made=1 ask.make=1 kube.capacity.template=1 kube.capacity.template.answered=1 kube.capacity.request=1 \
	kube.capacity.request.answered=1 ask.asked=1 ask.seen=1 ask.seen:2=1; do
	test_expect_success FAILPOINTS "killed at ${step%=*}, on the way to its nodes" "
		killed_at ${step%=*} serve ${step#*=}
	"
done

# Of an attempt that fails, and is made again.
for step in ask.fail=2 ask.drop=2 kube.capacity.request.remove=2 ask.dropped=2 ask.retry=2; do
	test_expect_success FAILPOINTS "killed at ${step%=*}, when an attempt has failed" "
		killed_at ${step%=*} fail ${step#*=}
	"
done

# one_kill N: each fourth one takes back what there is, and asks anew; half of them end the daemon at a step,
# where it comes to it, the others at any time. Of some, attempts fail.
kill_steps="ask.made ask.make kube.capacity.template.answered ask.seen ask.fail kube.capacity.request ask.drop
	ask.asked ask.dropped kube.capacity.request.answered ask.retry ask.seen:3"
one_kill() {
	if [ $(($1 % 4)) = 0 ]; then
		gpuq cancel --me >cancel.out 2>&1
		loop_one=$(grow 'gpus: 8\ntime: 1h') || return 1
	fi
	[ $(($1 % 12)) = 8 ] && becomes fail || becomes serve
	if [ $(($1 % 2)) = 0 ]; then
		sleep "0.$((($1 * 37) % 10))" && kill_gpuqd && again
		return
	fi
	kill_gpuqd || return 1
	GPUQ_FAILPOINT=$(echo $kill_steps | cut -d ' ' -f $(($1 / 2 % 12 + 1)))=kill && export GPUQ_FAILPOINT
	start_kube_gpuqd --config "$PWD/gpuqd.yaml" >again.out 2>&1
	unset GPUQ_FAILPOINT
	sleep "0.$((($1 * 53) % 10))"
	kill -KILL "$gpuqd_pid" 2>/dev/null
	wait "$gpuqd_pid" 2>/dev/null
	audit_state && again
}

test_expect_success 'so many kills that they are a hundred, at random steps: each job runs once on one request' '
	loop_i=0 &&
	while [ $loop_i -lt 86 ]; do
		one_kill $loop_i || return 1
		loop_i=$((loop_i + 1))
	done &&
	becomes serve && job_becomes "$loop_one" RUNNING 120 && n_pods "$loop_one" 1 && gpuq cancel "$loop_one" &&
	wait_for 90 no_requests && wait_for 90 no_nodes && none_twice
'

test_expect_success 'nothing was overcommitted' '
	nothing_was_overcommitted
'

test_done
