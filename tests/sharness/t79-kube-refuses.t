#!/bin/sh
test_description='kubelets that lack what their nodes offer: waiting jobs go elsewhere, running ones stay where they are'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --nodes 0

words="Allocate failed due to requested number of devices unavailable for acme.io/fx. Requested: 1, Available: 0, which is unexpected"

node_key() { # NODE JSONPATH
	gpuq nodes --json | grep "\"name\":\"$1\"" | json "$2"
}

# nothing_withheld: what was refused is believed to be there again
nothing_withheld() {
	gpuq status --json >status.out && [ "$(json refusing <status.out)" = "[]" ]
}

# refused_on N: so many refusals are in the log
refused_on() {
	[ "$(grep -c "node.short.*resource=acme.io/fx" gpuqd.log)" -ge "$1" ]
}

fx="gpus: 1\nresources: {acme.io/fx: 1}"

test_expect_success 'four nodes offer a device, and three of their kubelets have none' '
	fakenode add y1 y2 y3 gpus=2 acme.io/fx=2 && fakenode add y4 gpus=8 acme.io/fx=2 && start_kube_gpuqd &&
	for n in 1 2 3; do
		KUBECONFIG="$TMPDIR/k/admin.kubeconfig" "$kube_tools/fakenode" reject y$n UnexpectedAdmissionError "$words" >y$n.out 2>&1 3>&- 4>&- 5>&- &
		echo $! >y$n.pid && wait_for 30 says y$n.out "rejecting on y$n" || return 1
	done && wait_for 60 node_is y4 idle && wait_for 60 node_is y1 idle
'

test_expect_success 'a job that the three refuse runs on the fourth; it is not held' '
	id=$(fake_job "$fx\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && job_is "$id" pods.0.node y4 && job_is "$id" avoids "[]"
'

test_expect_success 'what they refuse is not free: in nodes, and in status until when' '
	wait_for 60 refused_on 3 && gpuq nodes --json >nodes.out && grep "\"name\":\"y1\"" nodes.out | grep -q "\"acme.io/fx\":{\"total\":2,\"free\":0}" && test "$(node_key y1 refuses.0.resource)" = acme.io/fx &&
	test "$(node_key y1 refuses.0.until_time)" != "" && gpuq status >out && says out "Withheld.* 2 acme.io/fx by the kubelet of y1 until"
'

test_expect_success 'a second one does not try them again' '
	n=$(grep -c node.short gpuqd.log) && other=$(fake_job "$fx\n$(fate hang=true)") && job_becomes "$other" RUNNING 120 && job_is "$other" pods.0.node y4 &&
	job_is "$other" attempt 0 && test "$(grep -c node.short gpuqd.log)" = "$n" && gpuq cancel "$other" && job_becomes "$other" CANCELLED 60
'

test_expect_success 'one that all nodes refuse which it may use waits, and says which, and for what' '
	third=$(fake_job "$fx\nnodes: [y1, y2]\n$(fate hang=true)") && wait_for 60 job_is "$third" reason Resources && job_is "$third" reasons.0.object acme.io/fx &&
	gpuq why "$third" >out && says out "acme.io/fx by the kubelet of node y1, which offers it" && says out "by the kubelet of node y2" && ! grep "failed it" out
'

# It could be moved to y1 with the end of what is believed there: its places are free, and the big one needs that on y4.
test_expect_success 'no job that runs is moved there when they are tried again' '
	gpuq cancel "$third" && job_becomes "$third" CANCELLED 60 && big=$(fake_job "gpus: 8\nnodes: [y4]\n$(fate hang=true)") && wait_for 180 nothing_withheld &&
	sleep 15 && job_is "$id" state RUNNING && job_is "$id" pods.0.node y4 && job_is "$id" evictions "[]" && job_is "$big" state PENDING
'

test_expect_success 'a job that waits tries them, and they are believed to lack it for longer' '
	fourth=$(fake_job "$fx\nnodes: [y1]\n$(fate hang=true)") && wait_for 60 says gpuqd.log "node.short node=y1 resource=acme.io/fx have=0 times=2 wait_s=120" &&
	wait_for 60 job_is "$fourth" reason Resources
'

test_expect_success 'a node that reports another number is tried at once; what runs is moved there when it serves it' '
	kill "$(cat y1.pid)" && fakenode up y1 && kube patch nodes/y1/status "{\"status\": {\"capacity\": {\"acme.io/fx\": \"3\"}, \"allocatable\": {\"acme.io/fx\": \"3\"}}}" &&
	job_becomes "$fourth" RUNNING 60 && job_becomes "$big" RUNNING 120 && job_becomes "$id" RUNNING 120 && job_is "$id" pods.0.node y1 && job_is "$id" evictions.0.cause consolidate
'

test_expect_success 'nothing was over-committed' '
	gpuq cancel -t R,PD >/dev/null && stop_gpuqd && nothing_was_overcommitted
'

test_done
