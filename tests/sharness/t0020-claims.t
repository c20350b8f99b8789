#!/bin/sh
test_description='claims: who is owed capacity gets it, with grace, exactly once, also across a kill of the daemon'
. "$(dirname "$0")/lib.sh"

cat >site.yaml <<'END'
version: 1
qos:
- {name: short-grace, grace: 1s}
- {name: settled, min_runtime: 1h}
queues:
- {name: prod, quota: 2}
- {name: batch, quota: 2}
END

# A gang of two that saves itself on USR1. Its first pod then leaves at once, the other when it is let go.
cat >victim.yaml <<END
name: victim
queue: batch
pods: 2
gpus: 1
checkpoint: {signal: USR1, grace: 60s}
command:
- sh
- -c
- |
  trap 'echo saved >>$TMPDIR/saved.\$GPUQ_JOB_ID.\$GPUQ_POD_INDEX' USR1
  echo \$GPUQ_ATTEMPT >>$TMPDIR/ran.\$GPUQ_JOB_ID.\$GPUQ_POD_INDEX
  while [ ! -e $TMPDIR/saved.\$GPUQ_JOB_ID.\$GPUQ_POD_INDEX ]; do sleep 0.05; done
  [ \$GPUQ_POD_INDEX = 0 ] && exit 0
  while [ ! -e $TMPDIR/leave ]; do sleep 0.05; done
END

# promised ID: where it is to start, in one line
promised() {
	job "$1" promise.pods | /usr/bin/python3 -c '
import json, sys
print(" ".join("%s%s" % (p["node"], p["devices"]) for p in json.load(sys.stdin)))'
}

# placed ID: where it runs, in the same form
placed() {
	job "$1" pods | /usr/bin/python3 -c '
import json, sys
print(" ".join("%s%s" % (p["node"], [d["index"] for d in p["devices"]]) for p in json.load(sys.stdin)))'
}

held_gpus() {
	gpuq status --json | json devices.held
}

test_expect_success 'start; another queue uses what nobody else asks for' '
	start_gpuqd --site "$PWD/site.yaml" && old=$(sh_job "exec sleep 600" --queue batch -g 2) && job_becomes "$old" RUNNING &&
	victim=$(submit victim.yaml) && job_becomes "$victim" RUNNING && test "$(free_gpus)" = 0 &&
	since=$(job "$victim" submit_time)
'

test_expect_success 'AC-VDK-8: a job inside its quota waits for victims, who are told to save themselves' '
	wait_for 60 test -e "$TMPDIR/ran.$victim.0" -a -e "$TMPDIR/ran.$victim.1" &&
	claimant=$(sh_job "exec sleep 600" --queue prod -g 2) && wait_for 60 job_is "$claimant" reason Victims &&
	job_is "$claimant" promise.victims "[\"$victim\"]" && job_is "$victim" state COMPLETING &&
	wait_for 60 test -e "$TMPDIR/saved.$victim.1" && job_is "$old" state RUNNING &&
	job_is "$claimant" reasons.0.object "$victim" && gpuq status "$claimant" >out && says out "Nominated" &&
	says out "Victims.*$victim" && gpuq status "$victim" >out && says out "reclaim under reclaim-quota by $claimant of prod" &&
	says out "needs 2: prod 0 -> 2 .share 2, quota 2.; batch 4 -> 2 .share 2, quota 2." &&
	gpuq status "$claimant" >out && says out "Victims.*$victim under reclaim-quota" && says out "needs 2: prod 0 -> 2" &&
	job_is "$claimant" promise.rule reclaim-quota && job "$claimant" promise.why >why && job "$victim" evictions.0.why >whyv &&
	test_cmp why whyv
'

test_expect_success 'what is free of it already is kept for it' '
	wait_for 60 eval "test \$(held_gpus) = 1" && third=$(sh_job "exit 0" --queue batch -g 1) &&
	wait_for 60 eval "test \$(job $third reason) != NotEvaluated" && job_is "$third" state PENDING &&
	promised "$claimant" >places
'

test_expect_success 'a kill of the daemon changes nothing of that' '
	kill_gpuqd && start_gpuqd && promised "$claimant" >again && test_cmp places again &&
	job_is "$claimant" promise.victims "[\"$victim\"]" && job_is "$third" state PENDING &&
	job_is "$claimant" promise.rule reclaim-quota && job "$claimant" promise.why >again && test_cmp why again &&
	wait_for 60 job_is "$claimant" reason Victims && test "$(held_gpus)" = 1 &&
	job "$victim" evictions >evictions && test "$(grep -o cause evictions | wc -l)" = 1 && job_is "$old" evictions "[]"
'

test_expect_success 'AC-VDK-8: it starts where it was nominated, once they are gone' '
	touch "$TMPDIR/leave" && job_becomes "$claimant" RUNNING && placed "$claimant" >got &&
	sed "s/ //g" places >want && sed "s/ //g" got >got1 && test_cmp want got1 && test "$(held_gpus)" = 0 &&
	job_is "$claimant" promise null
'

test_expect_success 'the victim waits again, keeps its place in line, and shows why it had to go' '
	wait_for 60 job_is "$victim" state PENDING && job_is "$victim" submit_time "$since" &&
	job_is "$victim" evictions.0.cause reclaim && job_is "$victim" evictions.0.rule reclaim-quota &&
	job_is "$victim" evictions.0.by "$claimant" && job_is "$victim" evictions.0.by_queue prod &&
	job_is "$third" state PENDING
'

test_expect_success 'it runs again, at nobody'\''s cost, when there is room' '
	rm -f "$TMPDIR"/saved.* && gpuq cancel "$claimant" && job_becomes "$victim" RUNNING && job_is "$victim" attempt 1 &&
	wait_for 60 grep -qx 1 "$TMPDIR/ran.$victim.0" && printf "0\n1\n" >want && test_cmp want "$TMPDIR/ran.$victim.0"
'

test_expect_success 'a claimant that is cancelled lets its victims and those behind it go on' '
	rm -f "$TMPDIR/leave" && claimant=$(sh_job "exec sleep 600" --queue prod -g 2) &&
	wait_for 60 job_is "$claimant" reason Victims && wait_for 60 test -e "$TMPDIR/saved.$victim.1" &&
	gpuq cancel "$claimant" && job_becomes "$claimant" CANCELLED && job_becomes "$third" COMPLETED &&
	touch "$TMPDIR/leave" && rm -f "$TMPDIR"/saved.* && job_becomes "$victim" RUNNING && job_is "$victim" attempt 2 &&
	gpuq cancel "$victim" "$old" && wait_for 60 eval "test \$(free_gpus) = 4"
'

test_expect_success 'a job whose qos lets it run for a while first is left alone' '
	id=$(sh_job "exec sleep 600" --queue batch -g 4 --qos settled) && job_becomes "$id" RUNNING &&
	claimant=$(sh_job "exit 0" --queue prod -g 1) && wait_for 60 job_is "$claimant" reason Resources &&
	job_is "$id" state RUNNING && gpuq cancel "$id" && job_becomes "$claimant" COMPLETED && job_is "$id" evictions "[]" &&
	wait_for 60 eval "test \$(free_gpus) = 4"
'

test_expect_success 'a job that may not be requeued ends as PREEMPTED' '
	once=$(sh_job "exec sleep 600" --queue batch -g 4 --no-requeue) && job_becomes "$once" RUNNING &&
	claimant=$(sh_job "exit 0" --queue prod -g 1) && job_becomes "$once" PREEMPTED && exits 250 gpuq wait "$once" &&
	job_becomes "$claimant" COMPLETED && job_is "$once" evictions.0.by "$claimant"
'

test_expect_success 'one that does not go is killed when its grace, or the most that its qos grants, is over' '
	rm -f "$TMPDIR/stays" && stays=$(sh_job "trap : TERM USR1; touch $TMPDIR/stays; while :; do sleep 0.1; done" \
		--queue batch -g 4 --grace 10m --qos short-grace --no-requeue) && wait_for 60 test -e "$TMPDIR/stays" &&
	claimant=$(sh_job "exit 0" --queue prod -g 1) && job_becomes "$claimant" COMPLETED &&
	job_is "$stays" state PREEMPTED && job_is "$stays" evictions.0.cause reclaim && wait_for 60 eval "test \$(free_gpus) = 4"
'

# ---- time ----

test_expect_success 'the time limit ends a job' '
	id=$(sh_job "exec sleep 600" --queue batch -g 1 --time 1s) && job_becomes "$id" TIMEOUT && exits 251 gpuq wait "$id" &&
	job_is "$id" evictions "[]"
'

test_expect_success 'a short job goes ahead of one that waits for the whole cluster, a long one does not' '
	long=$(sh_job "exec sleep 600" --queue batch -g 3 --time 10m) && job_becomes "$long" RUNNING &&
	all=$(sh_job "exec sleep 600" --queue batch -g 4 --time 1m) && wait_for 60 job_is "$all" reason Resources &&
	wait_for 60 eval "test \$(job $all planned_time) != null" &&
	later=$(sh_job "exec sleep 600" --queue batch -g 1 --time 1h) && short=$(sh_job "exit 0" --queue batch -g 1 --time 5m) &&
	job_becomes "$short" COMPLETED && gpuq why "$short" >out && says out "ahead of job $all, which is planned for" &&
	job_is "$later" state PENDING && job_is "$all" state PENDING &&
	gpuq cancel "$long" && job_becomes "$all" RUNNING && job_is "$later" state PENDING &&
	gpuq cancel "$all" "$later" && wait_for 60 eval "test \$(free_gpus) = 4"
'

# ---- how far they go ----

# evictions ARRAY: of its four elements
evictions() {
	for i in 0 1 2 3; do job "$1_$i" evictions || return 1; done
}

test_expect_success 'nobody leaves for a fair share where queues take back their quotas alone' '
	printf "scheduler: {reclaim_to: guarantee, starve_time: 2d}\n" >far.yaml && stop_gpuqd && start_gpuqd --config far.yaml &&
	gpuqd --config far.yaml --print-config | grep -q "reclaim_to: guarantee" &&
	printf "version: 1\nqueues:\n- {name: prod, quota: 0}\n- {name: batch, quota: 0}\n" >none.yaml && gpuq apply -f none.yaml &&
	all=$(sh_job "exec sleep 600" --queue batch -g 1 --array 0-3) && wait_for 60 eval "test \$(free_gpus) = 0" &&
	claimant=$(sh_job "exit 0" --queue prod -g 1) && wait_for 60 eval "test \$(job $claimant reason) = Resources" &&
	job_is "$claimant" state PENDING && evictions "$all" >got && printf "[]\n[]\n[]\n[]\n" >want && test_cmp want got
'

test_expect_success 'and somebody does where it is not said' '
	echo "scheduler: {}" >far.yaml && kill -HUP "$gpuqd_pid" && job_becomes "$claimant" COMPLETED && evictions "$all" >got && test "$(grep -c "\"rule\": \"reclaim-share\"" got)" = 1 &&
	gpuq cancel "$all" && wait_for 60 eval "test \$(free_gpus) = 4"
'

test_expect_success 'what is no such setting is refused with its place' '
	printf "scheduler:\n  reclaim_too: guarantee\n" >bad.yaml && test_must_fail gpuqd --config bad.yaml --check 2>err &&
	says err "bad.yaml:2:3: .*reclaim_too.*reclaim_to" &&
	printf "scheduler: {starve_time: 0s}\n" >bad.yaml && test_must_fail gpuqd --config bad.yaml --check 2>err && says err "bad.yaml:1:[0-9]+: .*starve_time"
'

test_expect_success 'nothing was lost or left' '
	wait_for 60 eval "test \$(in_queue) = 0" && stop_gpuqd
'

test_done
