#!/bin/sh
test_description='pods that never run: the place is given back, the node avoided, the reason told; at last the job is held'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

test_expect_success 'a queue with a short start timeout' '
	start_fake && start_fake_gpuqd && printf "version: 1\nqueues: [{name: default, start_timeout: 1s}]\n" >site.yaml && gpuq apply -f site.yaml
'

test_expect_success 'an attempt that does not run in time counts as the infrastructure: another node next' '
	id=$(fake_job start=10m -g 4) && wait_for 60 job_is "$id" attempt 1 && job "$id" evictions.0.cause | grep -qx infra &&
	test "$(job "$id" evictions.0.rule)" = start_timeout && job "$id" evictions.0.why | grep "not running 1s after it was placed: pod 0 on node-000" &&
	first=$(gpuq events "$id" --json | grep job.placed | head -n 1 | json nodes.0) && second=$(gpuq events "$id" --json | grep job.placed | tail -n +2 | head -n 1 | json nodes.0) &&
	test -n "$first" && test "$first" != "$second" && gpuq status "$id" >out && says out "^Avoids +$first until"
'

test_expect_success 'held after five such starts, its devices free, the reason in words, no retry used up' '
	wait_for 120 job_is "$id" reason HeldRetries && job_is "$id" state PENDING && test "$(free_gpus)" = 8 &&
	job "$id" message | grep "not running 1s after" && gpuq why "$id" >out && says out "HeldRetries" && test "$(job "$id" evictions | grep -o start_timeout | wc -l)" = 5
'

test_expect_success 'what it avoided and that it is held outlive a kill; released it is tried again' '
	kill_gpuqd && start_fake_gpuqd && job_is "$id" reason HeldRetries && test "$(job "$id" avoids | grep -o until_time | wc -l)" = 2 &&
	gpuq release "$id" && wait_for 60 job_is "$id" attempt 5 && gpuq cancel "$id" && job_becomes "$id" CANCELLED && kill_gpuqd
'

test_expect_success 'the time of queues that name none is read again at SIGHUP; what waits for a restart is named' '
	echo "start_timeout: 1h" >gpuqd.yaml && start_fake_gpuqd --config gpuqd.yaml && gpuq queues set default start_timeout=null &&
	id=$(fake_job start=10m -g 4) && job_becomes "$id" STARTING &&
	printf "start_timeout: 1s\nusage_k: 2\npriority_weights: {age: 77}\nmap_size: 1Gi\ncreates_per_second: 9\n" >gpuqd.yaml &&
	kill -HUP "$gpuqd_pid" && wait_for 60 job_is "$id" attempt 1 && job "$id" evictions.0.why | grep "not running 1s after" &&
	says gpuqd.log "config.reload keys=creates_per_second,map_size: these take effect at the next start" &&
	gpuq prio --weights >out && says out 77 && gpuq cancel "$id" && job_becomes "$id" CANCELLED && kill_gpuqd
'

test_done
