#!/bin/sh
test_description='a pod of another namespace that has the name of a pod of ours'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# pod NAME FIELD: of ours, as the apiserver has it
pod() {
	fake "/api/v1/namespaces/$namespace/pods/$1" "$2"
}

test_expect_success 'a daemon, and the name that the next pod will have' '
	start_fake && start_fake_gpuqd && first=$(fake_job run=100ms) && exits 0 gpuq wait "$first" &&
	name=$(job "$first" pods.0.name) && cluster=${name#gpuq-} && cluster=${cluster%%-*} &&
	namespace=$(grep "\"verb\":\"create\",\"resource\":\"pods\"" audit | head -n 1 | json ns 2>/dev/null ||
		grep "\"verb\":\"create\",\"resource\":\"pods\"" audit | head -n 1 | json namespace) && test -n "$namespace" &&
	id=$(fake_job hang=true --hold) && name=gpuq-$cluster-$id-0-0
'

test_expect_success 'one that is there before ours is made is not taken for it' '
	fault "on POST pods ns=$namespace count=1 delay=10s" && gpuq release "$id" && wait_for 60 eval "test \"\$(job $id state)\" != PENDING" &&
	fault "foreign node-0001 gpus=0 name=$name" && forged=$(fake "/api/v1/namespaces/foreign/pods/$name" metadata.uid) && test -n "$forged" &&
	job_becomes "$id" RUNNING && sleep 1 && job_is "$id" state RUNNING &&
	pod "$name" metadata.uid >uid && test "$(cat uid)" != "$forged" && test_must_fail pod "$name" metadata.deletionTimestamp 2>/dev/null &&
	says gpuqd.log "pod.conflict.*namespace=.*foreign"
'

test_expect_success 'its end is not the end of ours' '
	fault "delete-pod foreign/$name grace=0" && wait_for 60 eval "test -z \"\$(fake /api/v1/namespaces/foreign/pods/$name metadata.uid)\"" &&
	sleep 1 && job_is "$id" state RUNNING && gpuq cancel "$id" && job_becomes "$id" CANCELLED && test "$(n_pods "$id")" = 1
'

# A deletion that reaches the apiserver late finds another pod of that name there.
test_expect_success 'one that takes the place of ours is not deleted in its stead' '
	id=$(fake_job hang=true) && job_becomes "$id" RUNNING && name=gpuq-$cluster-$id-0-0 && ours=$(pod "$name" metadata.uid) &&
	fault "on DELETE pods ns=$namespace name=$name count=1 delay=5s" && { gpuq cancel "$id" & } && wait_for 60 job_is "$id" state COMPLETING &&
	fault "delete-pod $namespace/$name grace=0" && wait_for 60 eval "test -z \"\$(pod $name metadata.uid 2>/dev/null)\"" &&
	printf "{\"metadata\": {\"name\": \"%s\"}, \"spec\": {\"containers\": [{\"name\": \"a\", \"image\": \"test\"}]}}" "$name" >theirs.json &&
	/usr/bin/curl -sSf -H "Content-Type: application/json" --data-binary @theirs.json "http://127.0.0.1:$fake_port/api/v1/namespaces/$namespace/pods" >made &&
	theirs=$(json metadata.uid <made) && test "$theirs" != "$ours" && job_becomes "$id" CANCELLED && sleep 6 &&
	test "$(pod "$name" metadata.uid)" = "$theirs" && test -z "$(pod "$name" metadata.deletionTimestamp 2>/dev/null)"
'

test_expect_success 'end' '
	stop_gpuqd && stop_fake
'

test_done
