#!/bin/sh
test_description='elastic jobs take what is idle, give it back, and go on meanwhile; gangs end at their own pace'
. "$(dirname "$0")/lib.sh"

cat >site.yaml <<'END'
version: 1
queues:
- {name: prod, quota: 2}
- {name: batch, quota: 2}
END

# Each pod writes a line when it starts, and when it is told to leave.
cat >elastic.yaml <<END
name: elastic
queue: batch
pods: {min: 1, max: 4}
gpus: 1
command:
- sh
- -c
- |
  echo "start \$GPUQ_ATTEMPT" >>$TMPDIR/pods
  trap 'echo leave >>$TMPDIR/pods; exit 0' TERM
  while [ ! -e $TMPDIR/end ]; do sleep 0.05; done
END

test_expect_success 'it grows into what nobody else asks for' '
	start_gpuqd --site "$PWD/site.yaml" && id=$(submit elastic.yaml) && job_becomes "$id" RUNNING &&
	wait_for 60 job_is "$id" pod_count 4 && wait_for 60 eval "test \$(free_gpus) = 0" && job_is "$id" gpus 4 &&
	job_is "$id" attempt 0 && wait_for 60 eval "test \$(grep -c start $TMPDIR/pods) = 4"
'

test_expect_success 'it gives back what another queue is owed, and runs on' '
	claimant=$(sh_job "until [ -e $TMPDIR/done ]; do sleep 0.05; done" --queue prod -g 2) && job_becomes "$claimant" RUNNING &&
	job_is "$id" state RUNNING && job_is "$id" attempt 0 && wait_for 60 job_is "$id" pod_count 2 &&
	test "$(grep -c leave "$TMPDIR/pods")" = 2 && test "$(grep -c start "$TMPDIR/pods")" = 4 &&
	job_is "$id" evictions.0.cause shrink && job_is "$id" evictions.0.by "$claimant"
'

test_expect_success 'a kill of the daemon leaves it as it is' '
	kill_gpuqd && start_gpuqd && job_is "$id" state RUNNING && job_is "$id" pod_count 2 && job_is "$id" attempt 0
'

test_expect_success 'all of it ends, each pod at its own pace' '
	touch "$TMPDIR/done" "$TMPDIR/end" && job_becomes "$id" COMPLETED && job_is "$id" exit_code 0 &&
	job_becomes "$claimant" COMPLETED && wait_for 60 eval "test \$(free_gpus) = 4" &&
	! grep -q "start 1" "$TMPDIR/pods"
'

test_expect_success 'pods of a gang that end well one after the other are not started again' '
	rm -f "$TMPDIR/ran" && cat >gang.yaml <<-END &&
	queue: batch
	pods: 3
	gpus: 1
	command: [sh, -c, "echo x >>$TMPDIR/ran; [ \$RANK = 0 ] || until [ -e $TMPDIR/go ]; do sleep 0.05; done"]
	END
	id=$(submit gang.yaml) && wait_for 60 job_is "$id" pods.0.state ended && other=$(sh_job "exit 0" --queue prod -g 1) &&
	job_becomes "$other" COMPLETED && touch "$TMPDIR/go" && job_becomes "$id" COMPLETED && job_is "$id" attempt 0 &&
	test "$(wc -l <"$TMPDIR/ran")" = 3 && ! grep -q "schedule.apply" gpuqd.log && stop_gpuqd
'

test_done
