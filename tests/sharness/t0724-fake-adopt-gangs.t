#!/bin/sh
test_description='adopted gangs: pods beyond those that start together never overtake these, and never stay without them'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# api METHOD PATH [BODY]
api() {
	/usr/bin/curl -sSf -X "$1" -H 'Content-Type: application/json' ${3+--data-binary "$3"} "http://127.0.0.1:$fake_port$2"
}

# member GANG NAME [FATE]: a pod of one GPU, of a gang that starts with two
member() {
	member_key=${3-hang=true} member_value=${member_key#*=} member_key=${member_key%%=*}
	api POST /api/v1/namespaces/team/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"$2\", \"labels\": {\"kueue.x-k8s.io/pod-group-name\": \"$1\"},
		\"annotations\": {\"kueue.x-k8s.io/pod-group-total-count\": \"2\", \"gpuq.test/$member_key\": \"$member_value\"}},
		\"spec\": {\"schedulerName\": \"gpuq\", \"restartPolicy\": \"Never\", \"containers\": [{\"name\": \"main\", \"image\": \"i\",
		\"resources\": {\"limits\": {\"nvidia.com/gpu\": \"1\"}}}]}}" >member.out
}

pod_path() {
	echo "/api/v1/namespaces/team/pods/$1"
}

# pods: name and node of each
pods() {
	api GET /api/v1/namespaces/team/pods | /usr/bin/python3 -c '
import json, sys
for p in json.load(sys.stdin)["items"]: print(p["metadata"]["name"], "on", p["spec"].get("nodeName") or "none")' | sort >pods.out
}

# on N PREFIX: so many pods of these names have a node
on() {
	pods && test "$(grep "^$2" pods.out | grep -vc "on none")" = "$1" || { cat pods.out; return 1; }
}

no_pod() {
	! api GET "$(pod_path "$1")" >/dev/null 2>&1
}

# gang_jobs NAME: pods and state of its jobs
gang_jobs() {
	gpuq queue --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    j = json.loads(line)
    if (j.get("origin") or {}).get("name") == sys.argv[1]: print(j["pod_count"], j["state"], j["id"])' "$1" | sort >gang.out
}

# is_gang NAME LINE...: its jobs are these, without their ids
is_gang() {
	gang_jobs "$1" && shift && if [ $# = 0 ]; then ! grep . gang.out; return; fi && printf '%s\n' "$@" >gang.want && cut -d" " -f1,2 gang.out | sort | diff gang.want - >gang.diff || { cat gang.diff; return 1; }
}

said() {
	api GET /api/v1/namespaces/team/events >events && grep "$1" events >said.out
}

all_free() {
	test "$(free_gpus)" = 8
}

test_expect_success 'seven of eight devices are taken' '
	start_fake && api POST /api/v1/namespaces "{\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"name\": \"team\"}}" >/dev/null && start_fake_gpuqd &&
	printf "version: 1\nqueues: [{name: default}, {name: team, namespace: team}]\nadopt: {namespaces: [{name: team, queue: team, user: ann}]}\n" >site.yaml && gpuq apply -f site.yaml &&
	four=$(fake_job hang=true -g 4) && three=$(fake_job hang=true -g 3) && job_becomes "$three" RUNNING && wait_for 60 eval "test \$(free_gpus) = 1"
'

test_expect_success 'a third pod waits for the two that start together, though it would fit; its owner is told' '
	member g g0 && member g g1 && wait_for 60 is_gang g "2 PENDING" && member g g2 && wait_for 60 said "GangWaits.*\|.*beyond the 2 pods of PodGroup/g that start together" &&
	last=$(fake_job run=100ms -g 1) && job_becomes "$last" COMPLETED && is_gang g "2 PENDING" && on 0 g
'

test_expect_success 'also after gpuqd was killed' '
	kill_gpuqd && start_fake_gpuqd && last=$(fake_job run=100ms -g 1) && job_becomes "$last" COMPLETED && is_gang g "2 PENDING" && on 0 g
'

test_expect_success 'once the two run, it starts as a job of its own' '
	gpuq cancel "$three" && wait_for 60 is_gang g "1 RUNNING" "2 RUNNING" && on 3 g
'

test_expect_success 'it goes, and what its owner makes instead joins the gang, which runs on' '
	core=$(grep "^2" gang.out | cut -d" " -f3) && api DELETE "$(pod_path g2)" >/dev/null && wait_for 60 is_gang g "2 RUNNING" && member g g3 && wait_for 60 is_gang g "1 RUNNING" "2 RUNNING" && job_is "$core" state RUNNING
'

test_expect_success 'one of the two goes: all of them leave, and the next two are a gang' '
	third=$(grep "^1" gang.out | cut -d" " -f3) && api DELETE "$(pod_path g0)" >/dev/null && wait_for 60 no_pod g1 && wait_for 60 no_pod g3 && wait_for 60 job_is "$third" state CANCELLED &&
	job_is "$third" message "the pods that its gang starts with have ended" && wait_for 60 is_gang g && member g g4 && wait_for 60 said "1 of the 2 pods of PodGroup/g are there" && on 0 g &&
	member g g5 && wait_for 60 is_gang g "2 RUNNING"
'

test_expect_success 'a third pod that waits becomes one of the two when one of these goes before they start' '
	busy=$(fake_job hang=true -g 2) && job_becomes "$busy" RUNNING && wait_for 60 eval "test \$(free_gpus) = 0" &&
	member h h0 && member h h1 && wait_for 60 is_gang h "2 PENDING" && member h h2 && wait_for 60 said "beyond the 2 pods of PodGroup/h" && old=$(cut -d" " -f3 gang.out) &&
	api DELETE "$(pod_path h0)" >/dev/null && wait_for 60 job_is "$old" state CANCELLED && wait_for 60 is_gang h "2 PENDING" && gpuq cancel "$busy" && wait_for 60 on 2 h
'

test_expect_success 'two that end well leave the third alone' '
	gang_jobs h && gpuq cancel "$(cut -d" " -f3 gang.out)" && wait_for 60 is_gang h && wait_for 60 no_pod h1 &&
	member e e0 run=4s && member e e1 run=4s && wait_for 60 is_gang e "2 RUNNING" && member e e2 && wait_for 60 is_gang e "1 RUNNING" && on 3 e
'

test_expect_success 'nothing was removed beside pods that gpuqd did not make' '
	gang_jobs g && gpuq cancel $(cut -d" " -f3 gang.out) && gang_jobs e && gpuq cancel $(cut -d" " -f3 gang.out) "$four" && wait_for 60 all_free && ! grep "\"verb\":\"delete\",\"resource\":\"\(services\|configmaps\)\".*team" audit && ! grep delete_refused gpuqd.log
'

no_harm_was_done

test_done
