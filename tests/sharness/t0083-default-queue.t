#!/bin/sh
test_description='the queue default: all devices alone, none owed beside queues with a quota'
. "$(dirname "$0")/lib.sh"

quota() { gpuq queues --json | json_where name "$1" quota; }
json_where() { python3 -c '
import json, sys
key, want, member = sys.argv[1:]
for line in sys.stdin:
    v = json.loads(line)
    if v[key] == want: print(json.dumps(v[member]).strip("\""))' "$@"; }

test_expect_success 'without a site its quota is unlimited, and a queue without a quota changes nothing' '
	start_gpuqd && test "$(quota default)" = unlimited && gpuq export >site.now && ! says site.now quota >/dev/null &&
	echo "{version: 1, queues: [{name: idle}]}" >idle.yaml && gpuq apply -f idle.yaml && test "$(quota default)" = unlimited
'

test_expect_success 'apply names the jobs of default that a first quota makes evictable' '
	a=$(sh_job "sleep 600" -g 3) && job_becomes "$a" RUNNING &&
	printf "%s\n" "version: 1" "queues: [{name: team, quota: 4}]" >site.yaml &&
	gpuq apply -f site.yaml --dry-run >out && says out "^Would make 1 job evictable, as queue default has no quota any more: $a " &&
	test "$(quota default)" = unlimited && gpuq apply -f site.yaml --dry-run --json >out && test "$(json evictable.0.id <out)" = "$a" &&
	gpuq apply -f site.yaml >out && says out "^Makes 1 job evictable" && test "$(quota default)" = 0 && job_is "$a" state RUNNING
'

test_expect_success 'why names whose jobs hold the devices, and why they may stay' '
	b=$(sh_job "sleep 600" -g 2 --time 1h) && wait_for 30 eval "gpuq why $b >out && grep -q \"Held by\" out" &&
	says out "default: 3 GPUs of 1 job of .*: they are of the same queue" && gpuq cancel "$b" &&
	gpuq why --json "$b" >out && test "$(json waiting <out)" = null
'

test_expect_success 'its owner reclaims the devices from default' '
	c=$(sh_job "sleep 600" -g 4 -p team) && job_becomes "$c" RUNNING && gpuq status "$a" --json | json evictions.0.rule >out && says out reclaim-quota &&
	gpuq cancel "$a" "$c" && job_becomes "$a" CANCELLED
'

test_expect_success 'a quota that is written stays, and apply and doctor warn of an unlimited one beside limited ones' '
	echo "{version: 1, queues: [{name: default, quota: unlimited}]}" >all.yaml &&
	gpuq apply -f all.yaml >out 2>err && says err "warning: queue default has an unlimited quota beside limited ones" &&
	test "$(quota default)" = unlimited && { gpuq doctor >out || :; } && says out "queue default has an unlimited quota" &&
	test "$(gpuq status --json | json quotas.unlimited)" = "[\"default\"]" &&
	a=$(sh_job "sleep 600" -g 4) && job_becomes "$a" RUNNING && c=$(sh_job "sleep 600" -g 4 -p team) &&
	wait_for 30 eval "gpuq why $c >out && grep -q \"its quota is unlimited\" out"
'

test_expect_success 'after a restart it is as it was' '
	stop_gpuqd && start_gpuqd && test "$(quota default)" = unlimited && test "$(gpuq status --json | json quotas.default_time)" = null &&
	! grep -q "site.default" gpuqd.log && gpuq cancel --me && stop_gpuqd
'

test_done
