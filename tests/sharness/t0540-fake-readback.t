#!/bin/sh
test_description='AC-POD-4: which devices a pod has is shown where it is known, and read back from metrics that name pods'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# page POD DEVICE...: the page of the exporter from now on
page() {
	while [ $# -ge 2 ]; do
		echo "DCGM_FI_DEV_GPU_UTIL{gpu=\"$2\",UUID=\"GPU-$2\",pod=\"dcgm\",exported_pod=\"$1\"} 50"
		shift 2
	done >page.new
	mv page.new page
}

start_metrics() {
	/usr/bin/python3 "$test_source/tests/sharness/metrics_page.py" "$PWD/metrics.port" "$PWD/page" </dev/null >>metrics.log 2>&1 3>&- 4>&- 5>&- &
	wait_for 60 test -s metrics.port
}

# on GPU JOB: the device is shown as that job's
on() {
	[ "$(node node-0000 "devices.$1.jobs.0")" = "$2" ]
}

name() {
	job "$1" pods.0.name
}

test_expect_success 'devices that the kubelet chose are a count, without indexes and variables' '
	page && start_metrics && printf "metrics: [\"http://127.0.0.1:%s/page\"]\nmetrics_interval: 300ms\n" "$(cat metrics.port)" >gpuqd.yaml &&
	start_fake --nodes 1 --gpus 6 && start_fake_gpuqd --config "$PWD/gpuqd.yaml" && a=$(fake_job hang=true -g 1) && b=$(fake_job hang=true -g 2) &&
	job_becomes "$a" RUNNING && job_becomes "$b" RUNNING && job_is "$a" pods.0.devices.0.index null && job_is "$a" pods.0.devices.0.uuid null &&
	gpuq status "$b" >text && grep "on node-0000 2 gpus$" text && on 0 "$a" && node_is node-0000 devices.0.parts_assumed true && node_is node-0000 devices.5.parts_assumed false &&
	api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$b" >pod.out && ! grep GPUQ_DEVICES pod.out
'

test_expect_success 'AC-POD-4: the device that the node reports is accounted, without an eviction' '
	page "$(name "$a")" 4 && wait_for 60 job_is "$a" pods.0.devices.0.index 4 && on 4 "$a" && job_is "$a" state RUNNING && job_is "$a" evictions "[]" &&
	node_is node-0000 devices.4.parts_assumed false && node_is node-0000 devices.0.state free && gpuq status "$a" >text && grep "on node-0000 gpu 4$" text &&
	grep "measure.devices .*first=4" gpuqd.log
'

test_expect_success 'a device that was planned for another pod changes places; one alone of two says nothing yet' '
	on 1 "$b" && c=$(fake_job hang=true -g 1) && job_becomes "$c" RUNNING && page "$(name "$a")" 4 "$(name "$b")" 3 && on 0 "$c" &&
	page "$(name "$a")" 4 "$(name "$c")" 2 && wait_for 60 job_is "$c" pods.0.devices.0.index 2 && job_is "$b" pods.0.devices.0.index null && on 0 "$b" && on 1 "$b" &&
	page "$(name "$a")" 4 "$(name "$c")" 2 "$(name "$b")" 3 "$(name "$b")" 5 && wait_for 60 job_is "$b" pods.0.devices.0.index 3 && job_is "$b" pods.0.devices.1.index 5 &&
	for job in "$a" "$b" "$c"; do job_is "$job" state RUNNING && job_is "$job" attempt 0 || return 1; done
'

test_expect_success 'a report that contradicts another one is not believed' '
	page "$(name "$a")" 2 && d=$(fake_job hang=true -g 1) && job_becomes "$d" RUNNING && page "$(name "$a")" 2 "$(name "$d")" 0 && wait_for 60 job_is "$d" pods.0.devices.0.index 0 &&
	job_is "$a" pods.0.devices.0.index 4
'

test_expect_success 'it is known after a restart, when no metrics are there, and the plan on the pod does not undo it' '
	page && kill_gpuqd && start_fake_gpuqd --config "$PWD/gpuqd.yaml" && job_is "$a" pods.0.devices.0.index 4 && job_is "$c" pods.0.devices.0.index 2 &&
	api PATCH "/namespaces/default/pods/$(name "$a")" "{\"metadata\": {\"labels\": {\"seen\": \"again\"}}}" >/dev/null && sleep 1 && job_is "$a" pods.0.devices.0.index 4 &&
	e=$(fake_job hang=true -g 1) && job_becomes "$e" RUNNING && on 1 "$e"
'

no_harm_was_done

test_done
