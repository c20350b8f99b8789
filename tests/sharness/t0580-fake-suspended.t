#!/bin/sh
test_description='suspended Jobs: started behind the gate and suspended again by writes that are lost, refused and repeated; one job for each pod'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# The test plays the controller of Jobs: fakekube only keeps them.

# api METHOD PATH [BODY [TYPE]]
api() {
	/usr/bin/curl -sSf -X "$1" -H "Content-Type: ${4-application/json}" ${3+--data-binary "$3"} "http://127.0.0.1:$fake_port$2"
}

jobs=/apis/batch/v1/namespaces/team/jobs

# suspended NAME GPUS [SPEC [ANNOTATIONS]]: JSON members
suspended() {
	api POST "$jobs" "{\"apiVersion\": \"batch/v1\", \"kind\": \"Job\", \"metadata\": {\"name\": \"$1\", \"labels\": {\"kueue.x-k8s.io/queue-name\": \"team\"}, \"annotations\": {${4-}}},
		\"spec\": {\"suspend\": true, ${3-} \"template\": {\"spec\": {\"restartPolicy\": \"Never\", \"containers\": [{\"name\": \"main\", \"image\": \"i\", \"resources\": {\"limits\": {\"nvidia.com/gpu\": \"$2\"}}}]}}}}" >job.out && json metadata.uid <job.out >"uid.$1"
}

is_started() {
	api GET "$jobs/$1" >job.out && grep "\"suspend\":false" job.out && grep "\"schedulingGates\":\[{\"name\":\"gpuq.io/node\"}\]" job.out
}

is_as_before() {
	api GET "$jobs/$1" >job.out && grep "\"suspend\":true" job.out && ! grep schedulingGates job.out
}

# pod_of JOB POD [FATE]: its controller makes a pod, by the template
pod_of() {
	api POST /api/v1/namespaces/team/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"$2\", \"annotations\": {${3-"\"gpuq.test/hang\": \"true\""}},
		\"ownerReferences\": [{\"apiVersion\": \"batch/v1\", \"kind\": \"Job\", \"name\": \"$1\", \"uid\": \"$(cat "uid.$1")\", \"controller\": true}]},
		\"spec\": {\"schedulingGates\": [{\"name\": \"gpuq.io/node\"}${gates-}], \"restartPolicy\": \"Never\", \"containers\": [{\"name\": \"main\", \"image\": \"i\", \"resources\": {\"limits\": {\"nvidia.com/gpu\": \"1\"}}}]}}" >pod.out
}

# ids NAME [queue|history]: of the jobs of that Job
ids() {
	gpuq "${2:-queue}" --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    job = json.loads(line)
    if (job.get("origin") or {}).get("name") == sys.argv[1]: print(job["id"])' "$1"
}

# n_ids N NAME [queue|history]
n_ids() {
	test "$(ids "$2" ${3+"$3"} | grep -c .)" = "$1"
}

no_pod() {
	! api GET "/api/v1/namespaces/team/pods/$1" >/dev/null 2>&1
}

said() {
	api GET /api/v1/namespaces/team/events >events && grep "$1" events
}

all_free() {
	test "$(free_gpus)" = 8
}

test_expect_success 'a namespace is adopted' '
	start_fake && api POST /api/v1/namespaces "{\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"name\": \"team\"}}" >/dev/null && start_fake_gpuqd &&
	printf "version: 1\nqueues: [{name: default}, {name: team, namespace: team}]\nadopt: {namespaces: [{name: team, queue: team}]}\n" >site.yaml && gpuq apply -f site.yaml
'

test_expect_success 'one is started in one write, its pod bound to its node after the gate is open' '
	suspended a 1 && wait_for 60 is_started a && wait_for 60 n_ids 1 a && id=$(ids a) && job_is "$id" state STARTING && pod_of a a-1 && job_becomes "$id" RUNNING && job_is "$id" pods.0.name a-1 &&
	api GET /api/v1/namespaces/team/pods/a-1 >pod.out && ! grep schedulingGates pod.out && grep "\"metadata.name\"" pod.out && job_is "$id" origin.kind Job && gpuq queue -o ORIGIN >list && grep Job/a list
'

test_expect_success 'a second pod of it is a job of its own' '
	pod_of a a-2 "\"gpuq.test/run\": \"300ms\"" && wait_for 60 n_ids 1 a history && job_is "$(ids a history)" pods.0.name a-2 && job_is "$id" state RUNNING
'

test_expect_success 'cancelled: first it is suspended, then the pod goes; it is restored, and stays' '
	gpuq cancel "$id" && wait_for 60 no_pod a-1 && job_becomes "$id" CANCELLED && wait_for 60 is_as_before a && grep "\"gpuq.io/cancelled\":\"$id\"" job.out && wait_for 60 all_free && n_ids 0 a &&
	grep -n "\"verb\":\"patch\",\"resource\":\"jobs\"" audit | grep -c a >patches && api DELETE "$jobs/a" >/dev/null
'

test_expect_success 'a pod whose gate others keep closed is not touched until they open theirs' '
	suspended b 1 && wait_for 60 is_started b && id=$(ids b) && gates=", {\"name\": \"example.com/theirs\"}" && pod_of b b-1 && gates= && suspended after 1 && wait_for 60 is_started after && job_is "$id" state STARTING &&
	api PATCH /api/v1/namespaces/team/pods/b-1 "{\"spec\": {\"schedulingGates\": [{\"name\": \"gpuq.io/node\"}]}}" application/merge-patch+json >/dev/null && job_becomes "$id" RUNNING &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED && wait_for 60 is_as_before b && other=$(ids after) && gpuq cancel "$other" && job_becomes "$other" CANCELLED && wait_for 60 is_as_before after
'

test_expect_success 'a gate of ours on a pod without a Job, and Jobs that cannot be started, are told so' '
	api POST /api/v1/namespaces/team/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"lone\"}, \"spec\": {\"schedulingGates\": [{\"name\": \"gpuq.io/node\"}], \"containers\": [{\"name\": \"main\", \"image\": \"i\"}]}}" >/dev/null &&
	suspended wide 1 "\"parallelism\": 2000000000, \"completions\": 2000000000," && suspended none 1 "\"parallelism\": 0," && suspended managed 1 "\"managedBy\": \"kueue.x-k8s.io/multikueue\"," &&
	wait_for 60 said "for pods of Jobs alone" && wait_for 60 said "pods at once, not 2000000000" && wait_for 60 said "pods at once, not 0" && wait_for 60 said "managedBy is kueue.x-k8s.io/multikueue" && n_ids 0 wide && n_ids 0 none && n_ids 0 managed &&
	api DELETE /api/v1/namespaces/team/pods/lone >/dev/null
'

test_expect_success 'the write that starts it is refused: it waits without devices, and is started once it is not' '
	fault "on PATCH jobs status=403 reason=Forbidden message=\"not now\"" && suspended c 1 && wait_for 60 n_ids 1 c && id=$(ids c) && wait_for 60 job_is "$id" reason ClusterRefused && wait_for 60 all_free && is_as_before c &&
	fault clear && gpuq hold "$id" && gpuq release "$id" && wait_for 120 is_started c && pod_of c c-1 && job_becomes "$id" RUNNING && gpuq cancel "$id" && job_becomes "$id" CANCELLED && wait_for 60 is_as_before c
'

test_expect_success 'answers are lost, versions conflict, lists are taken anew: each is started once' '
	fault "on PATCH jobs every=2 drop-after-commit" "on PATCH pods every=2 drop-after-commit" "on GET jobs every=3 status=500" "on WATCH gone count=4" && for i in 1 2 3 4; do suspended "f$i" 1 || return 1; done && fault compact close-watches &&
	for i in 1 2 3 4; do wait_for 120 is_started "f$i" && pod_of "f$i" "f$i-1" "\"gpuq.test/run\": \"300ms\"" || return 1; done &&
	for i in 1 2 3 4; do wait_for 120 n_ids 1 "f$i" history || return 1; done && for i in 1 2 3 4; do n_ids 0 "f$i" || return 1; done && fault clear && wait_for 60 all_free
'

test_expect_success 'the Job is deleted while it waits, and while its first pod is waited for: the job is cancelled' '
	suspended big 5 && wait_for 60 n_ids 1 big && id=$(ids big) && api DELETE "$jobs/big" >/dev/null && job_becomes "$id" CANCELLED &&
	suspended d 1 && wait_for 60 is_started d && id=$(ids d) && api DELETE "$jobs/d" >/dev/null && job_becomes "$id" CANCELLED && wait_for 60 all_free
'

# waiting N: so many of the jobs of Jobs wait, each Job has one
waiting() {
	gpuq queue --json -t PENDING >queue.out && test "$(/usr/bin/python3 -c '
import json, sys
names = [(json.loads(line).get("origin") or {}).get("name") for line in open("queue.out")]
print(sum(1 for n in set(names) if n and n.startswith("many-") and names.count(n) == 1))')" = "$1"
}

test_expect_success 'more Jobs than are read at once: when the namespaces change, each is queued once' '
	for i in $(seq 50); do suspended "many-$i" 9 || return 1; done && wait_for 60 waiting 50 &&
	echo "{version: 1, adopt: {namespaces: [{name: team}, {name: other}]}}" >more.yaml && gpuq apply -f more.yaml && wait_for 60 waiting 50 &&
	for i in $(seq 50); do api DELETE "$jobs/many-$i" >/dev/null || return 1; done && wait_for 60 waiting 0
'

test_expect_success 'deleted while gpuqd is away: likewise' '
	suspended big 5 && wait_for 60 n_ids 1 big && a=$(ids big) && suspended e 1 && wait_for 60 is_started e && b=$(ids e) && stop_gpuqd && api DELETE "$jobs/big" >/dev/null && api DELETE "$jobs/e" >/dev/null && start_fake_gpuqd &&
	job_becomes "$a" CANCELLED && job_becomes "$b" CANCELLED && wait_for 60 all_free
'

no_harm_was_done

test_done
