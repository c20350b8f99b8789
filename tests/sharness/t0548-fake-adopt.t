#!/bin/sh
test_description='pods that were not submitted: one job for each, bound once, whatever fails and whenever gpuqd is killed'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# api METHOD PATH [BODY]
api() {
	/usr/bin/curl -sSf -X "$1" -H 'Content-Type: application/json' ${3+--data-binary "$3"} "http://127.0.0.1:$fake_port$2"
}

# stray NAME GPUS [ANNOTATIONS [LABELS [CONTAINER [SPEC]]]]: somebody makes a pod for the scheduler gpuq; JSON members
stray() {
	api POST /api/v1/namespaces/team/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"$1\", \"annotations\": {${3-}}, \"labels\": {${4-}}},
		\"spec\": {\"schedulerName\": \"gpuq\", ${6-} \"restartPolicy\": \"Never\", \"containers\": [{\"name\": \"main\", \"image\": \"i\", ${5-}
		\"resources\": {\"limits\": {\"nvidia.com/gpu\": \"$2\"}}}]}}" >stray.out
}

hang='"gpuq.test/hang": "true"'

# jobs_of NAME [queue|history]: the ids of jobs of that pod
jobs_of() {
	gpuq "${2:-queue}" --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    job = json.loads(line)
    if (job.get("origin") or {}).get("name") == sys.argv[1]: print(job["id"])' "$1"
}

# adopted NAME: waits until it has a job, one; prints its id
adopted() {
	wait_for 60 eval "test -n \"\$(jobs_of $1)\"" >&2 && jobs_of "$1" >adopted.out && test "$(grep -c . adopted.out)" = 1 && cat adopted.out
}

pod_path() {
	echo "/api/v1/namespaces/team/pods/$1"
}

remove() {
	for remove_one; do api DELETE "$(pod_path "$remove_one")" >/dev/null || return 1; done
}

no_pod() {
	! api GET "$(pod_path "$1")" >/dev/null 2>&1
}

all_free() {
	test "$(free_gpus)" = 8
}

site() {
	cat >site.yaml <<-END
	version: 1
	queues: [{name: default}, {name: team, namespace: team}, {name: other, namespace: elsewhere}, {name: closed, users: [eve]}]
	adopt: {namespaces: [{name: team$1}]}
	END
	gpuq apply -f site.yaml
}

test_expect_success 'without adopt such a pod is left alone' '
	start_fake && api POST /api/v1/namespaces "{\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"name\": \"team\"}}" >/dev/null &&
	start_fake_gpuqd && stray first 1 "\"gpuq.test/run\": \"2s\"" && job=$(fake_job run=100ms -g 1) && job_becomes "$job" COMPLETED &&
	test -z "$(jobs_of first)" && ! grep "\"verb\":\"get\",\"resource\":\"pods\",.*first" audit
'

test_expect_success 'a site file that names no leaf is refused with the place' '
	test_must_fail site ", queue: nix" 2>why && grep "site.yaml:3:.*adopt.namespaces.*queue: expected a queue without queues below it" why
'

test_expect_success 'nor the queue of another namespace' '
	test_must_fail site ", queue: other" 2>why && grep "site.yaml:3:.*adopt.namespaces.*queue: expected a queue of namespace team: that of queue other is elsewhere" why
'

test_expect_success 'with it, the pod that is there is queued, bound, and charged like a job; its owner keeps it' '
	site ", queue: team, user: ann" && id=$(adopted first) && gpuq wait "$id" && job "$id" origin.kind >out && grep Pod out &&
	job_is "$id" state COMPLETED && job_is "$id" user ann && job_is "$id" queue team && job_is "$id" pods.0.name first && api GET "$(pod_path first)" >/dev/null &&
	gpuq history -o NAME,ORIGIN >list && grep "Pod/first *Pod/first" list && test "$(job "$id" gpu_seconds)" != 0.0
'

test_expect_success 'a label names its queue; one of another namespace, a closed one and no queue are refused, and its owner is told' '
	stray named 1 "" "\"gpuq.io/queue\": \"default\"" && stray other 1 "" "\"gpuq.io/queue\": \"other\"" && stray closed 1 "" "\"gpuq.io/queue\": \"closed\"" &&
	stray nix 1 "" "\"gpuq.io/queue\": \"nix\"" && wait_for 60 eval "api GET /api/v1/namespaces/team/events >events && grep \"no queue is named nix; you may use: team\\\"\" events" && remove nix &&
	wait_for 60 eval "api GET /api/v1/namespaces/team/events >events && grep \"namespace team is not the one of queue other\" events && grep \"ann may not use queue closed\" events" &&
	test -z "$(jobs_of other)$(jobs_of closed)" && remove other closed named
'

test_expect_success 'what only a job of gpuq submit can have is refused by name' '
	stray sees 1 "" "" "\"env\": [{\"name\": \"NVIDIA_VISIBLE_DEVICES\", \"value\": \"all\"}]," && stray part 1 "\"gpu-fraction\": \"0.5\"" &&
	wait_for 60 eval "api GET /api/v1/namespaces/team/events >events && grep \"sets NVIDIA_VISIBLE_DEVICES\" events && grep \"\\\"NotQueued\\\"\" events" &&
	remove sees part
'

test_expect_success 'a pod with a label of gpuqd is never adopted' '
	stray ours 1 "" "\"gpuq.io/job\": \"7\"" && stray holds 1 "" "\"gpuq.io/placeholder\": \"p\"" && stray after 1 "\"gpuq.test/run\": \"3s\"" && id=$(adopted after) && gpuq wait "$id" &&
	test -z "$(jobs_of ours)$(jobs_of holds)" && remove ours holds
'

test_expect_success 'cancelled while it is pending: the pod is deleted, then the job ends, and no other begins' '
	stray big 5 && id=$(adopted big) && gpuq cancel "$id" && wait_for 60 no_pod big && wait_for 60 job_is "$id" state CANCELLED && test -z "$(jobs_of big)"
'

test_expect_success 'cancelled while it runs: the pod is deleted; requeue is refused' '
	stray runs 2 "$hang" && id=$(adopted runs) && job_becomes "$id" RUNNING && test_must_fail gpuq requeue "$id" 2>why && grep "not gpuqd.s to make again" why &&
	gpuq cancel "$id" && wait_for 60 no_pod runs && job_becomes "$id" CANCELLED && wait_for 60 all_free
'

test_expect_success 'deleted by its owner while it is pending, and while it runs: the job is cancelled' '
	stray big 5 && id=$(adopted big) && api DELETE "$(pod_path big)" >/dev/null && wait_for 60 job_is "$id" state CANCELLED &&
	stray runs 2 "$hang" && id=$(adopted runs) && job_becomes "$id" RUNNING && api DELETE "$(pod_path runs)" >/dev/null && wait_for 60 job_is "$id" state CANCELLED &&
	job_is "$id" message "its pod was deleted" && wait_for 60 all_free
'

test_expect_success 'deleted while gpuqd is away: likewise; a pod of the same name is another job' '
	stray big 5 && a=$(adopted big) && stray runs 2 "$hang" && b=$(adopted runs) && job_becomes "$b" RUNNING && stop_gpuqd &&
	remove big runs && wait_for 60 no_pod runs && stray runs 2 "$hang" && start_fake_gpuqd &&
	wait_for 60 job_is "$a" state CANCELLED && wait_for 60 job_is "$b" state CANCELLED && c=$(adopted runs) && test "$c" != "$b" && job_becomes "$c" RUNNING &&
	gpuq cancel "$c" && wait_for 60 no_pod runs
'

test_expect_success 'what describes its pods is refused at update; when and for how much it runs is not' '
	stray never 1 "" "" "" "\"nodeSelector\": {\"no\": \"node\"}," && id=$(adopted never) &&
	for key in pods=3 gpus=1 gpus=2 image=nope "env={A: b}" "node_selector={}" node_selector= "tolerations=[{operator: Exists}]" cpus=1 retry=2 requeue=true array=0-3 exclusive=true command=[a]; do
		test_must_fail gpuq update "$id" "$key" 2>why && grep "its pods are not gpuqd.s to make again" why || return 1
	done &&
	gpuq update "$id" nice=5 comment=mine time=2h deadline=2099-01-01 exclude=node-0001 name=other labels="{a: b}" && job_is "$id" nice 5 && job_is "$id" comment mine &&
	job_is "$id" state PENDING && gpuq cancel "$id" && wait_for 60 no_pod never
'

test_expect_success 'its binding is refused: the pod stays, the job waits without devices, and starts once it is not' '
	fault "on POST pods/binding status=403 reason=Forbidden message=\"not now\"" && stray waits 2 "$hang" && id=$(adopted waits) &&
	wait_for 60 job_is "$id" reason ClusterRefused && wait_for 60 all_free && api GET "$(pod_path waits)" >/dev/null && fault clear && gpuq hold "$id" && gpuq release "$id" &&
	wait_for 120 job_is "$id" state RUNNING && gpuq cancel "$id" && wait_for 60 no_pod waits
'

test_expect_success 'another scheduler was faster: the job ends, the pod and its devices are others'"'"'' '
	stray big 1 "$hang" "" "" "\"nodeSelector\": {\"no\": \"node\"}," && id=$(adopted big) && api POST "$(pod_path big)/binding" "{\"apiVersion\": \"v1\", \"kind\": \"Binding\", \"metadata\": {\"name\": \"big\"}, \"target\": {\"kind\": \"Node\", \"name\": \"node-0001\"}}" >/dev/null &&
	wait_for 60 job_is "$id" state CANCELLED && wait_for 60 eval "test \$(free_gpus) = 7" && api DELETE "$(pod_path big)" >/dev/null && wait_for 60 no_pod big && wait_for 60 all_free
'

test_expect_success 'answers are lost, versions expire, lists are taken anew: one job for each pod' '
	fault "on POST pods/binding every=2 drop-after-commit" "on GET pods every=3 status=500" "on WATCH gone count=3" && for i in 1 2 3 4 5 6; do stray "s$i" 1 "\"gpuq.test/run\": \"300ms\"" || return 1; done &&
	fault compact close-watches && for i in 1 2 3 4 5 6; do wait_for 90 eval "test \"\$(jobs_of s$i history | grep -c .)\" = 1" || return 1; done &&
	for i in 1 2 3 4 5 6; do test -z "$(jobs_of s$i)" || return 1; done && fault clear && wait_for 60 all_free
'

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

# killed_at FAILPOINT NAME: gpuqd dies at that step of a pod; the next one runs it, as one job
killed_at() {
	stop_gpuqd && GPUQ_FAILPOINT="$1" && export GPUQ_FAILPOINT && start_fake_gpuqd && stray "$2" 2 "$hang" && wait_for 60 gpuqd_is_dead && unset GPUQ_FAILPOINT &&
		start_fake_gpuqd && killed_id=$(adopted "$2") && job_becomes "$killed_id" RUNNING && job_is "$killed_id" attempt 0 &&
		test "$(jobs_of "$2" | grep -c .)$(jobs_of "$2" history | grep -c .)" = 10 && gpuq cancel "$killed_id" && wait_for 60 no_pod "$2" && wait_for 60 all_free
}

test_expect_success FAILPOINTS 'killed before the job was stored' 'killed_at adopt.submit=kill k1'
test_expect_success FAILPOINTS 'killed after the decision was stored' 'killed_at dispatch.adopt=kill k2'
test_expect_success FAILPOINTS 'killed before the pod is bound' 'killed_at kube.bind=kill k3'
test_expect_success FAILPOINTS 'killed after it was bound' 'killed_at kube.bind.answered=kill k4'

test_expect_success FAILPOINTS 'a job whose number of pods an earlier version has changed: gpuqd makes none' '
	stop_gpuqd && GPUQ_FAILPOINT="update.adopted:*=eio" && export GPUQ_FAILPOINT && start_fake_gpuqd && unset GPUQ_FAILPOINT &&
	stray held 1 "$hang" "" "" "\"nodeSelector\": {\"no\": \"node\"}," && id=$(adopted held) && gpuq update "$id" pods=3 node_selector= &&
	wait_for 60 job_is "$id" state STARTING && sleep 2 && api GET /api/v1/namespaces/team/pods >pods && ! grep "gpuq-[0-9a-f]*-$id-" pods && gpuq cancel "$id" && wait_for 60 no_pod held && job_becomes "$id" CANCELLED && wait_for 60 all_free
'

test_expect_success FAILPOINTS 'a pending one is queued anew by the next gpuqd' '
	stop_gpuqd && GPUQ_FAILPOINT="update.adopted:*=eio" && export GPUQ_FAILPOINT && start_fake_gpuqd && unset GPUQ_FAILPOINT &&
	stray never 1 "" "" "" "\"nodeSelector\": {\"no\": \"node\"}," && id=$(adopted never) && gpuq update "$id" pods=3 && stop_gpuqd && start_fake_gpuqd &&
	wait_for 60 job_is "$id" state CANCELLED && job_is "$id" message "its number of pods was changed, and gpuqd makes none of them" && api GET "$(pod_path never)" >/dev/null &&
	next=$(adopted never) && test "$next" != "$id" && job_is "$next" pod_count 1 && gpuq cancel "$next" && wait_for 60 no_pod never
'

test_expect_success FAILPOINTS 'killed before the pod of a cancelled job is deleted: the next one deletes it' '
	stray big 5 && id=$(adopted big) && stop_gpuqd && GPUQ_FAILPOINT=adopt.delete=kill && export GPUQ_FAILPOINT && start_fake_gpuqd && { gpuq cancel "$id" || :; } && wait_for 60 gpuqd_is_dead &&
	unset GPUQ_FAILPOINT && start_fake_gpuqd && wait_for 60 no_pod big && wait_for 60 job_is "$id" state CANCELLED && test -z "$(jobs_of big)"
'

no_harm_was_done

test_done
