#!/bin/sh
test_description='real control plane: bookings that end while the daemon is killed, before, at and after its pods are made'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/provision.sh"

# So many kills; make check-kube-long has 100, of 10 s each. In parts: GPUQ_TEST_KILLS=25 GPUQ_TEST_FIRST_KILL=50 makes
# those from 50 to 74 of the hundred, which differ in place and kind.
kills=${GPUQ_TEST_KILLS:-10}
first=${GPUQ_TEST_FIRST_KILL:-0}

pool big big 8 2 | site
cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/provisioning.yaml"

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" || { skip_all="needs --enable-failpoints"; test_done; }

test_expect_success 'the kind, an autoscaler, a count of requests and pods, a daemon' '
	printf "finished_pod_keep: 1s\n" >gpuqd.yaml && crd v1 && autoscaler v1 && {
		KUBECONFIG="$TMPDIR/k/admin.kubeconfig" "$kube_tools/booking-watch" v1 scaler >watch.out 2>&1 3>&- 4>&- 5>&- &
		booking_pid=$!
	} && wait_for 30 grep -q ^watching watch.out && start_kube_gpuqd --config "$PWD/gpuqd.yaml" --site "$PWD/site.yaml"
'

again() {
	start_kube_gpuqd --config "$PWD/gpuqd.yaml"
}
# n_ended: bookings whose end was seen
n_ended() {
	grep -c "^ended " scaler/bookings
}
all_ended() {
	test "$(n_ended)" -ge "$1"
}
# it_runs_once: the one job comes to run, on two requests at most, and leaves nothing
it_runs_once() {
	becomes serve && loop_job=$(gpuq queue -h -o JOBID | tr -d ' ') && [ -n "$loop_job" ] && job_becomes "$loop_job" RUNNING 90 &&
		wait_for 30 n_pods "$loop_job" 1 && loop_made=$(grep -c -e "-$loop_job-ask" scaler/seen) && [ "$loop_made" -le 3 ] &&
		gpuq cancel "$loop_job" && wait_for 60 no_requests && wait_for 60 no_nodes && none_twice
}

# Places of the program on the way from nodes that are there to pods that are made.
steps="dispatch.create kube.post ask.seen:3 journal.durable:3 kube.post.answered ask.seen:2 journal.answered:4 store.commit:5"

# ends_while_away STEP WHAT: it is killed there, and the booking ends before its successor comes
ends_while_away() {
	kill_gpuqd && becomes serve && GPUQ_FAILPOINT="$1=kill" && export GPUQ_FAILPOINT || return 1
	start_kube_gpuqd --config "$PWD/gpuqd.yaml" >again.out 2>&1
	grow 'gpus: 8\ntime: 1h' >submit.out 2>&1
	unset GPUQ_FAILPOINT
	wait_for 15 gpuqd_is_dead || kill -KILL "$gpuqd_pid"
	wait "$gpuqd_pid" 2>/dev/null
	touch scaler/down && sleep 0.3 && away_n=$(requests | grep -c .) && away_ended=$(n_ended)
	then_becomes "$2" && wait_for 30 all_ended $((away_ended + away_n)) && rm scaler/down && again || return 1
	[ -n "$(gpuq queue -h -o JOBID)" ] || grow 'gpus: 8\ntime: 1h' >submit.out
	it_runs_once
}
# ends_at_any_time N WHAT: it ends in the second after the nodes came, and the daemon is killed about then
ends_at_any_time() {
	becomes "soon-$2" && grow 'gpus: 8\ntime: 1h' >submit.out && at_n=$(wc -l <scaler/seen) &&
		wait_for 30 eval "test \$(grep -c '^made ' scaler/bookings) -ge $at_n" && sleep "1.$((($1 * 37) % 10))" && kill_gpuqd &&
		sleep "0.$((($1 * 53) % 10))" && becomes serve && again && it_runs_once
}

test_expect_success "$kills kills from $first: no pod against a booking that has ended, no request twice" '
	loop_i=$first &&
	while [ $loop_i -lt $((first + kills)) ]; do
		loop_what=$(echo expired revoked | cut -d " " -f $((loop_i / 2 % 2 + 1)))
		if [ $((loop_i % 2)) = 0 ]; then
			loop_step=$(echo $steps | cut -d " " -f $((loop_i / 2 % 8 + 1)))
			ends_while_away "$loop_step" "$loop_what" || { echo "kill $loop_i, at $loop_step, $loop_what"; return 1; }
		else
			ends_at_any_time $loop_i "$loop_what" || { echo "kill $loop_i, at any time, $loop_what"; return 1; }
		fi
		loop_i=$((loop_i + 1))
	done
'

test_expect_success 'so the watch of all pods and requests says' '
	kill "$booking_pid" && "$kube_tools/booking-watch" --verdict scaler
'

test_expect_success 'nothing was overcommitted' '
	nothing_was_overcommitted
'

test_done
