#!/bin/sh
test_description='gpuq logs of one attempt, since a time and with times, on the fake cluster: of pods that run and that are gone'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

no_pods() {
	test "$(fake /api/v1/namespaces/default/pods items)" = "[]"
}

# stamped FILE: all of its lines have times in front
stamped() {
	! grep -vE "^20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9:]+\.[0-9]+Z (one|two|three|four)$" "$1"
}

lines=$(printf "one\ntwo\nthree\nfour\n")

test_expect_success 'with times, and since one, of a pod that runs' '
	printf "version: 1\nqueues:\n- {name: keeps, quota: 4, logs_keep: {time: 1d, size: 4Ki}}\n- {name: not, quota: 4}\n" >site.yaml && printf "finished_pod_keep: 0s\n" >now.yaml &&
	start_fake && start_fake_gpuqd --site "$PWD/site.yaml" --config "$PWD/now.yaml" &&
	id=$(fake_job "log-every=2s hang=true slow-exit=2s" "--annotation=gpuq.test/log=$lines" -p keeps --retry 1) && wait_for 60 eval "gpuq logs $id | grep four" &&
	gpuq logs --timestamps "$id" >times && test "$(wc -l <times)" = 4 && stamped times && third=$(sed -n "s/^\([^ ]*\)\.[0-9]*Z three/\1Z/p" times) &&
	gpuq logs --since "$third" "$id" >out && printf "three\nfour\n" >want && test_cmp want out && gpuq logs --since "$third" --timestamps --tail 1 "$id" >out && test_cmp out - <<-END
	$(tail -n 1 times)
	END
'

test_expect_success 'of an earlier attempt and of the last one once their pods are gone' '
	exits 1 gpuq logs --attempt 1 "$id" && says err "its only one is 0" && gpuq requeue "$id" && wait_for 60 eval "gpuq status --json $id | json attempt | grep -qx 1" &&
	wait_for 60 eval "gpuq logs --attempt 0 --timestamps $id >gone" && test_cmp times gone && gpuq logs --since "$third" --attempt 0 "$id" >out && test_cmp want out &&
	wait_for 60 eval "gpuq logs --attempt 1 $id | grep four" && timeout 60 gpuq logs -f --attempt 0 "$id" >out && test "$(cat out)" = "$lines" &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED 60 && wait_for 60 no_pods && gpuq logs --attempt 0 --timestamps "$id" >gone && test_cmp times gone &&
	wait_for 60 eval "gpuq logs --attempt 1 --timestamps $id >last" && stamped last && ! test_cmp times last && gpuq logs "$id" >out && test "$(cat out)" = "$lines"
'

test_expect_success 'without logs_keep that of an earlier attempt is gone' '
	b=$(fake_job "log=b exit-code=1 run=1s" -p not --retry 1) && exits 1 gpuq wait "$b" && job_is "$b" attempt 1 && exits 1 gpuq logs --attempt 0 "$b" && says err "no output of pod .* is kept"
'

no_harm_was_done

test_done
