#!/bin/sh
test_description='an apiserver whose answers are lost, late, refused or nonsense'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

test_expect_success 'start' '
	start_fake && start_fake_gpuqd
'

test_expect_success 'an answer that is lost after the pod was made: one pod' '
	fault "on POST pods drop-after-commit count=2" &&
	a=$(fake_job run=300ms) && b=$(fake_job run=300ms -g 2) && exits 0 gpuq wait "$a" "$b" &&
	test "$(n_pods "$a")" = 1 && test "$(n_pods "$b")" = 1 && job_is "$a" attempt 0 && job_is "$b" attempt 0
'

test_expect_success 'a connection that is reset before the pod was made: one pod' '
	fault clear "on POST pods drop-before-commit reset count=2" &&
	a=$(fake_job run=300ms) && exits 0 gpuq wait "$a" && test "$(n_pods "$a")" = 1 && job_is "$a" attempt 0
'

test_expect_success 'too many requests: it waits as it was told and goes on' '
	fault clear "on POST pods status=429 retry-after=1 count=3" &&
	a=$(fake_job run=300ms) && exits 0 gpuq wait "$a" && test "$(n_pods "$a")" = 1 && job_is "$a" attempt 0
'

test_expect_success 'errors of the server: it goes on trying' '
	fault clear "on POST pods status=500 count=2" "on POST pods status=503 count=2" "on DELETE pods status=500 count=2" &&
	a=$(fake_job run=300ms) && exits 0 gpuq wait "$a" && test "$(n_pods "$a")" = 1 && job_is "$a" attempt 0 &&
	b=$(fake_job hang=true) && job_becomes "$b" RUNNING && gpuq cancel "$b" && job_becomes "$b" CANCELLED
'

test_expect_success 'an error page of a proxy is not an answer' '
	fault clear "on POST pods html count=2" "on GET pods html count=1" &&
	a=$(fake_job run=300ms) && exits 0 gpuq wait "$a" && test "$(n_pods "$a")" = 1 && job_is "$a" attempt 0
'

test_expect_success 'nor are bytes that are no JSON, nor half of an answer' '
	fault clear "on POST pods garbage count=1" "on POST pods truncate=40 count=1" &&
	a=$(fake_job run=300ms) && exits 0 gpuq wait "$a" && b=$(fake_job run=300ms) && exits 0 gpuq wait "$b" &&
	test "$(n_pods "$a")" = 1 && test "$(n_pods "$b")" = 1
'

test_expect_success 'a pod that was seen, and has ended and gone since, is not made again after a late no' '
	fault clear "on POST pods nth=1 drop-after-commit" "on GET pods nth=1 status=503" &&
	a=$(fake_job "run=20ms exit-code=75" --retry=1:exit:75) && exits 75 gpuq wait "$a" && sleep 1 &&
	test "$(n_pods "$a")" = 2 && job_is "$a" attempt 1
'

test_expect_success 'a request that is answered late is not made twice' '
	fault clear "on POST pods nth=1 delay-after=3s" &&
	a=$(fake_job run=300ms) && exits 0 gpuq wait "$a" && test "$(n_pods "$a")" = 1
'

test_expect_success 'a removal whose answer is lost' '
	fault clear "on DELETE pods drop-after-commit count=2" &&
	a=$(fake_job hang=true -g 4) && job_becomes "$a" RUNNING && gpuq cancel "$a" && job_becomes "$a" CANCELLED &&
	wait_for 60 eval "test \$(free_gpus) = 8"
'

test_expect_success 'a pod that can never be made: the job fails and says why' '
	fault clear "on POST pods status=422 message=\"spec.containers: not like this\" reason=Invalid count=1" &&
	a=$(fake_job run=300ms) && job_becomes "$a" FAILED && job "$a" message >message && says message "not like this"
'

test_expect_success 'an orphan with our cluster'"'"'s name is removed' '
	fault clear &&
	a=$(fake_job hang=true) && job_becomes "$a" RUNNING && own=$(job "$a" pods.0.name) &&
	other=$(echo "$own" | sed "s/-$a-0-0\$/-9999-0-0/") && test "$own" != "$other" &&
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods/$own" |
		/usr/bin/python3 -c "
import json, sys
o = json.load(sys.stdin)
m = o[\"metadata\"]
json.dump({\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"spec\": o[\"spec\"], \"metadata\": {
	\"name\": sys.argv[1], \"labels\": dict(m[\"labels\"], **{\"gpuq.io/job\": \"9999\"}), \"annotations\": m[\"annotations\"]}}, sys.stdout)
" "$other" >orphan.json &&
	/usr/bin/curl -sSf -H "Content-Type: application/json" --data-binary @orphan.json \
		"http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods" >/dev/null &&
	wait_for 60 eval "! /usr/bin/curl -sf http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods/$other" &&
	job_is "$a" state RUNNING && gpuq cancel "$a" && job_becomes "$a" CANCELLED
'

# While the removal is on its way, its pod goes by itself and another of that name comes.
test_expect_success 'a pod that took the name of ours is not removed in its place' '
	fault clear "on DELETE pods nth=1 delay=2s" &&
	a=$(fake_job hang=true) && job_becomes "$a" RUNNING && own=$(job "$a" pods.0.name) && gpuq cancel "$a" &&
	wait_for 60 eval "test \$(fake /fake/state faults.0.hits) = 1" && fault "delete-pod default/$own grace=0" &&
	printf "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"%s\"}, \"spec\": {\"containers\": [{\"name\": \"a\", \"image\": \"a\"}]}}" "$own" >theirs.json &&
	/usr/bin/curl -sSf -H "Content-Type: application/json" --data-binary @theirs.json "http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods" >/dev/null &&
	job_becomes "$a" CANCELLED && sleep 3 &&
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods/$own" >theirs.out && ! grep deletionTimestamp theirs.out
'

no_harm_was_done
test_done
