#!/bin/sh
test_description='adopted pods are held to the pod policy of their queue, and left alone once their namespace is taken out of adopt'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# api METHOD PATH [BODY]
api() {
	/usr/bin/curl -sSf -X "$1" -H 'Content-Type: application/json' ${3+--data-binary "$3"} "http://127.0.0.1:$fake_port$2"
}

# stray NAME GPUS [SPEC [CONTAINER [QUEUE]]]: somebody makes a pod for the scheduler gpuq that hangs; JSON members
stray() {
	api POST /api/v1/namespaces/team/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"$1\", \"labels\": {\"gpuq.io/queue\": \"${5:-team}\"}, \"annotations\": {\"gpuq.test/hang\": \"true\"}},
		\"spec\": {${3:+$3,} \"schedulerName\": \"gpuq\", \"containers\": [{${4:+$4,} \"name\": \"main\", \"image\": \"i\",
		\"resources\": {\"limits\": {\"nvidia.com/gpu\": \"$2\"}}}]}}" >stray.out
}

# job_of NAME [queue|history]: its id and state
job_of() {
	gpuq "${2:-queue}" --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    j = json.loads(line)
    if (j.get("origin") or {}).get("name") == sys.argv[1]: print(j["id"], j["state"])' "$1" >job_of.out && cat job_of.out
}

# is_job NAME STATE
is_job() {
	job_of "$1" | grep -q " $2\$"
}

id_of() {
	job_of "$1" "${2:-queue}" | cut -d" " -f1
}

remove() {
	for remove_one; do api DELETE "/api/v1/namespaces/team/pods/$remove_one" >/dev/null || return 1; done
}

has_no_node() {
	api GET "/api/v1/namespaces/team/pods/$1" >pod.out && ! grep '"nodeName"' pod.out
}

# said NAME TEXT: in an Event about that pod
said() {
	api GET /api/v1/namespaces/team/events | /usr/bin/python3 -c '
import json, sys
for e in json.load(sys.stdin)["items"]:
    if e["involvedObject"]["name"] == sys.argv[1]: print(e["reason"], e["message"])' "$1" >said.out && grep -F -e "$2" said.out || { cat said.out; return 1; }
}

# site NAMESPACES
site() {
	cat >site.yaml <<-END
	version: 1
	queues: [{name: default}, {name: team, namespace: team}, {name: strict, namespace: team, pod_policy: restricted}, {name: open, namespace: team, pod_policy: privileged}]
	adopt: {namespaces: [$1]}
	END
	gpuq apply -f site.yaml
}

test_expect_success 'names that no namespace and no user has are refused' '
	start_fake && api POST /api/v1/namespaces "{\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"name\": \"team\"}}" >/dev/null && start_fake_gpuqd &&
	test_must_fail site "{name: Team_X}" 2>why && grep "site.yaml:3:.*adopt.namespaces.*name: expected a namespace as in Kubernetes" why &&
	test_must_fail site "{name: team, user: a b}" 2>why && grep "site.yaml:3:.*adopt.namespaces.*user: expected the name of a user, without blanks" why && site "{name: team, queue: team, user: ann}"
'

# refused NAME TEXT: it stays without a job and a node, and its owner is told
refused() {
	wait_for 60 said "$1" "NotQueued gpuqd does not queue it: $2" && test -z "$(job_of "$1")" && has_no_node "$1" && remove "$1"
}

test_expect_success 'what gpuq submit refuses of a pod in this queue is refused of an adopted one' '
	no="not allowed in this queue" && stray pid 1 "\"hostPID\": true" && refused pid "spec.hostPID: $no" && stray net 1 "\"hostNetwork\": true" && refused net "spec.hostNetwork: $no" &&
	stray root 1 "" "\"securityContext\": {\"privileged\": true}" && refused root "spec.containers[0].securityContext.privileged: $no" &&
	stray path 1 "\"volumes\": [{\"name\": \"v\", \"hostPath\": {\"path\": \"/\"}}]" && refused path "spec.volumes[0].hostPath: $no" &&
	stray port 1 "" "\"ports\": [{\"containerPort\": 80, \"hostPort\": 80}]" && refused port "spec.containers[0].ports[0].hostPort: $no" &&
	stray magic 1 "\"volumes\": [{\"name\": \"v\", \"emptyDir\": {}}]" "\"volumeMounts\": [{\"name\": \"v\", \"mountPath\": \"/var/run/nvidia-container-devices/0\"}]" && refused magic "spec.containers[0].volumeMounts[0].mountPath: mounts there choose devices"
'

test_expect_success 'a restricted queue demands what it cannot add to a pod of others' '
	stray bare 1 "" "" strict && refused bare "spec.containers[0].securityContext.allowPrivilegeEscalation: expected false" &&
	stray most 1 "\"securityContext\": {\"runAsNonRoot\": true}" "\"securityContext\": {\"allowPrivilegeEscalation\": false, \"capabilities\": {\"drop\": [\"ALL\"]}}" strict && refused most "spec.containers[0].securityContext.seccompProfile.type: expected RuntimeDefault" &&
	stray good 1 "\"securityContext\": {\"runAsNonRoot\": true, \"seccompProfile\": {\"type\": \"RuntimeDefault\"}}" "\"securityContext\": {\"allowPrivilegeEscalation\": false, \"capabilities\": {\"drop\": [\"ALL\"]}}" strict && wait_for 60 is_job good RUNNING && gpuq cancel "$(id_of good)" &&
	stray host 1 "\"hostPID\": true" "" open && wait_for 60 is_job host RUNNING && gpuq cancel "$(id_of host)"
'

test_expect_success 'a pod without an end is told nothing that is not so' '
	stray server 1 "\"restartPolicy\": \"Always\"" && wait_for 60 is_job server RUNNING && wait_for 60 said server "Queued it is job" && ! grep "not started again" said.out && gpuq cancel "$(id_of server)" &&
	api POST /api/v1/namespaces/team/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"vcuda\"}, \"spec\": {\"schedulerName\": \"gpuq\", \"containers\": [{\"name\": \"main\", \"image\": \"i\", \"resources\": {\"limits\": {\"tencent.com/vcuda-core\": \"200\"}}}]}}" >/dev/null &&
	refused vcuda "tencent.com/vcuda-core: it is the word of a system that shares devices"
'

test_expect_success 'taken out of adopt: what waits is not bound, what runs goes on; put in again, it is queued' '
	stray runs 4 && wait_for 60 is_job runs RUNNING && block=$(fake_job hang=true -g 4) && job_becomes "$block" RUNNING && stray waits 4 && wait_for 60 is_job waits PENDING && id=$(id_of waits) &&
	site "" && wait_for 60 job_is "$id" state CANCELLED && job_is "$id" message "its namespace was taken out of adopt" && said waits "NotQueued gpuqd does not queue it: its namespace was taken out of adopt" &&
	gpuq cancel "$block" && wait_for 60 eval "test \$(free_gpus) = 4" && last=$(fake_job run=100ms -g 4) && job_becomes "$last" COMPLETED && has_no_node waits && is_job runs RUNNING &&
	site "{name: team, queue: team, user: ann}" && wait_for 60 is_job waits RUNNING
'

test_expect_success 'no object is deleted beside pods that were adopted' '
	gpuq cancel "$(id_of waits)" "$(id_of runs)" && wait_for 60 eval "test \$(free_gpus) = 8" && ! grep "\"verb\":\"delete\",\"resource\":\"\(services\|configmaps\)\".*team" audit && ! grep delete_refused gpuqd.log
'

no_harm_was_done

test_done
