#!/bin/sh
test_description='a destroyed state directory is restored from the copies of backup, to an instant, with 50 pods running'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# What is there: name and uid of each pod that has not ended.
pods() {
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods" | /usr/bin/python3 -c '
import json, sys
for p in json.load(sys.stdin)["items"]:
    if p["status"].get("phase") in ("Pending", "Running"):
        print(p["metadata"]["name"], p["metadata"]["uid"])' | sort
}

running_pods_are() {
	gpuq queue --json -t RUNNING | json pod_count | awk "{ n += \$1 } END { exit n != $1 }"
}

restored_is() {
	test "$(gpuq status --json | json "recovering.$1")" = "$2"
}

is_recovered() {
	test "$(gpuq status --json | json recovering)" = null
}

is_shipped() {
	grep -lq "$1" copies/*.seg
}

deletes() {
	grep -c "\"verb\":\"delete\",\"resource\":\"pods\"" audit || test $? = 1
}

# destroyed_and_restored [option...]: nothing of the state directory is left
destroyed_and_restored() {
	kill_gpuqd && rm -r state && start_fake_gpuqd --restore "$PWD/copies" "$@"
}

test_expect_success 'thirty pods, and a copy of before' '
	mkdir copies && printf "backup: {to: %s, every: 1h, log_every: 1s}\n" "$PWD/copies" >backup.yaml && start_fake --nodes 16 --gpus 4 &&
	start_fake_gpuqd --config backup.yaml && wait_for 60 eval "ls copies/*.mdb.sha256" &&
	for i in $(seq 20); do last=$(fake_job hang=true -g 1 --name "early-$i" --time 2h) || return 1; done &&
	for i in 1 2; do last=$(fake_job hang=true -g 1 --pods 5 --name "gang-$i") || return 1; done && early=$last &&
	wait_for 60 running_pods_are 30 && mark=$(fake_job hang=true --hold --name the-mark) && wait_for 60 is_shipped the-mark && sleep 1.1 &&
	then=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)
'

test_expect_success 'twenty more, and their numbers' '
	sleep 1.1 && for i in $(seq 20); do last=$(fake_job hang=true -g 1 --name "late-$i" --time 2h) || return 1; done && late=$last &&
	wait_for 60 running_pods_are 50 && mark=$(fake_job hang=true --hold --name the-end) && wait_for 60 is_shipped the-end && pods >before && test "$(wc -l <before)" = 50
'

test_expect_success 'to the instant before them: the same 50 pods go on, as the same jobs' '
	destroyed_and_restored --at "$then" && wait_for 60 restored_is listed true && wait_for 60 running_pods_are 50 && pods >after && cmp before after && test "$(deletes)" = 0 &&
	job_is "$early" state RUNNING && job_is "$late" name late-20 && job_is "$late" state RUNNING && exits 254 gpuq status "$mark"
'

test_expect_success 'no number is used twice' '
	one=$(fake_job hang=true --hold) && test "$one" -gt 1000000 && test "$one" -gt "$mark"
'

test_expect_success 'to the newest: not one of them had to be recovered' '
	destroyed_and_restored && wait_for 60 running_pods_are 50 && pods >after && cmp before after && test "$(deletes)" = 0 && job_is "$mark" name the-end &&
	wait_for 60 is_recovered && says gpuqd.log "recover.ended by=gpuqd pods_kept=0" && two=$(fake_job hang=true --hold) && test "$two" -gt 1000000 && stop_gpuqd
'

test_done
