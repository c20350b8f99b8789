#!/bin/sh
test_description='real control plane: what becomes of requests for nodes: AC-DWS scenarios, faults of the cloud'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/provision.sh"

{
	pool big big 8 4 && pool spare spare 8 4 && pool hasty hasty 8 1 'timeout: 5s, booking: 15s' &&
		pool odd odd 8 1 '' 'test.gpuq.io/disk: fast' && pool few few 8 4 'max_requests: 1'
} | site

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/provisioning.yaml"

test_expect_success 'the kind, an autoscaler, a daemon' '
	printf "finished_pod_keep: 1s\n" >gpuqd.yaml && crd v1 && autoscaler v1 &&
	start_kube_gpuqd --config "$PWD/gpuqd.yaml" --site "$PWD/site.yaml"
'

# request_of JOB: the name of that of its present attempt; since MARK REGEX: the daemon said so after the mark
request_of() {
	job "$1" provisioning.request
}
mark() {
	wc -l <gpuqd.log
}
since() {
	tail -n "+$(($1 + 1))" gpuqd.log | grep -Eq -e "$2"
}

test_expect_success 'AC-DWS-1: a gang gets its nodes in one request, which a consumed booking does not end' '
	becomes accept && a=$(grow "pods: 4\ngpus: 8\ntime: 2h") && job_becomes "$a" PROVISIONING 60 &&
	gpuq status >out && says out "^Pools +big 0 of 4, asked 4" &&
	wait_for 30 job_is "$a" provisioning.condition Accepted && n_pods "$a" 0 && then_becomes serve &&
	job_becomes "$a" RUNNING 60 && grep "count=4 .*template=yes run=7800" scaler/log &&
	pods_of "$a" metadata.annotations >notes.out && test "$(grep -c consume-provisioning-request notes.out)" = 4 &&
	test "$(grep -c provisioning-class-name notes.out)" = 4 && at=$(mark) && then_becomes consumed && sleep 3 &&
	job_is "$a" state RUNNING && n_pods "$a" 4 && n_of "$a" 1 && test "$(requests)" != "" && ends "$a"
'

# next_flavor WORD TEXT [FLAVOR]: a request that becomes so is given up, and the next flavor asked; TEXT is shown
next_flavor() {
	becomes serve "${3-big}=$1" && next_at=$(mark) && next_job=$(grow_on "[${3-big}, spare]" "gpus: 8\ntime: 1h") &&
		job_becomes "$next_job" RUNNING 90 && since "$next_at" "$2" && job_is "$next_job" flavor spare &&
		gpuq events "$next_job" >out && says out "$2" && n_pods "$next_job" 1 && n_of "$next_job" 2 && ends "$next_job"
}

test_expect_success 'AC-DWS-10: a quota that is used up is told, and the next flavor asked' '
	next_flavor quota "QuotaExceeded: quota PREEMPTIBLE_GPUS is used up"
'
test_expect_success 'gpuq pools shows the failure; a job that has no other flavor waits with it' '
	a=$(grow "gpus: 8\ntime: 1h") && wait_for 30 job_is "$a" reason ProvisioningFailed && job_is "$a" reasons.0.who operator &&
	gpuq why "$a" >out && says out "QuotaExceeded.*no other request before 20" && gpuq pools >out && says out "^big +big +failing .*QuotaExceeded" &&
	says out "^spare +spare +open" && gpuq pools --json big >pool.json && test "$(json last_failure.message <pool.json)" = "$(json failure <pool.json)" &&
	test "$(json last_failure.time <pool.json)" = "$(json failed_time <pool.json)" && json last_failure.time <pool.json | grep -q "^20.*Z" &&
	gpuq pools -h -o LAST_FAILURE big >out && says out "^20.* .*QuotaExceeded" && gpuq cancel "$a"
'
test_expect_success 'AC-DWS-10: so is a zone that has none for an indefinite time' '
	sleep 4 && next_flavor exhausted "ResourcePoolExhausted: the zone has none"
'
test_expect_success 'AC-DWS-9: one that is not served in time is deleted, with no condition at all' '
	next_flavor nothing "it was not served within 5s" hasty
'
test_expect_success 'nodes that come with fewer devices are not used' '
	sleep 4 && next_flavor half "came with 4 devices, not 8"
'
test_expect_success 'nor are those that come with other labels' '
	next_flavor serve "came without test.gpuq.io/disk, not with the label test.gpuq.io/disk=fast" odd
'

# another_attempt WORD TEXT [FLAVOR]: one that becomes so is made again, and nothing starts on its nodes
another_attempt() {
	becomes "$1" && another_at=$(mark) && another_job=$(grow_on "${3-big}" "gpus: 8\ntime: 1h") &&
		wait_for 60 since "$another_at" "$2" && n_pods "$another_job" 0 && becomes serve &&
		job_becomes "$another_job" RUNNING 90 && n_pods "$another_job" 1 && pods_of "$another_job" metadata.annotations >notes.out &&
		test_must_fail grep -q -e "-ask[0-9]*-1\"" notes.out && ends "$another_job"
}

test_expect_success 'AC-DWS-3: a booking that has expired: another attempt, and no pod on its nodes' '
	another_attempt expire "ask.failed.*BookingExpired"
'
test_expect_success 'so where capacity is revoked before it is used' '
	another_attempt revoke "ask.failed.*CapacityRevoked"
'
test_expect_success 'nodes that do not come in time' '
	sleep 4 && another_attempt late "1 of its 1 nodes had not come 15s after" hasty
'

test_expect_success 'conditions in the wrong order, twice, by a clock that is an hour behind, or ahead' '
	for ahead in -3600 3600; do
		echo $ahead >scaler/clock && becomes backwards && a=$(grow "gpus: 8\ntime: 1h") && job_becomes "$a" RUNNING 60 &&
			n_pods "$a" 1 && n_of "$a" 1 && ends "$a" || return 1
	done && rm scaler/clock
'

test_expect_success 'AC-DWS-12: deleted by others before it is provisioned, it is made again' '
	becomes accept && a=$(grow "gpus: 8\ntime: 1h") && wait_for 30 job_is "$a" provisioning.state accepted &&
	kube delete "$group/namespaces/gpuq-jobs/provisioningrequests/$(request_of "$a")" &&
	wait_for 30 job_is "$a" provisioning.attempt 2 && then_becomes serve && job_becomes "$a" RUNNING 60 && n_of "$a" 2
'
test_expect_success 'AC-DWS-12, AC-DWS-13: deleted while its pods run, by others or as seven days are over, they go on' '
	at=$(mark) && kube delete "$group/namespaces/gpuq-jobs/provisioningrequests/$(requests)" && wait_for 30 since "$at" ask.lost &&
	sleep 2 && job_is "$a" state RUNNING && job_is "$a" attempt 0 && n_of "$a" 2
'
test_expect_success 'AC-DWS-13: its next start is on a new request' '
	becomes serve && gpuq requeue "$a" && wait_for 60 n_of "$a" 3 && job_becomes "$a" RUNNING 60 && job_is "$a" attempt 1 && ends "$a"
'

test_expect_success 'AC-DWS-16: the name is taken by a request of others: it stays, the template is removed, the next flavor' '
	last=$(tail -n 1 scaler/seen) && id=${last%-ask*} && id=${id##*-} && ask=${last##*-ask} && ask=${ask%-*} &&
	name=${last%-*-ask*}-$((id + 1))-ask$((ask + 1))-1 && kube apply -f - <<-END &&
	apiVersion: v1
	kind: PodTemplate
	metadata: {name: theirs, namespace: gpuq-jobs}
	template: {spec: {nodeSelector: {a: theirs}, containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 1}}}]}}
	---
	apiVersion: autoscaling.x-k8s.io/v1
	kind: ProvisioningRequest
	metadata: {name: $name, namespace: gpuq-jobs}
	spec: {provisioningClassName: theirs, podSets: [{count: 1, podTemplateRef: {name: theirs}}]}
	END
	becomes serve theirs=nothing && at=$(mark) && a=$(grow_on "[big, spare]" "gpus: 8\ntime: 1h") && job_becomes "$a" RUNNING 60 &&
	job_is "$a" flavor spare && since "$at" "ask.failed.*taken by an object that is not ours" && test "$(requests | grep -cx "$name")" = 1 &&
	templates >templates.out && test_must_fail grep -qx "$name" templates.out && grep -qx theirs templates.out && gpuq cancel "$a" &&
	kube delete "$group/namespaces/gpuq-jobs/provisioningrequests/$name" && kube delete gpuq-jobs/podtemplates/theirs &&
	wait_for 60 no_requests && wait_for 60 no_nodes
'

test_expect_success 'AC-DWS-8: as many requests at once as are allowed; the next job waits, and its reason says so' '
	becomes accept && a=$(grow_on few "gpus: 8\ntime: 1h") && b=$(grow_on few "gpus: 8\ntime: 1h") && job_becomes "$a" PROVISIONING 60 &&
	wait_for 60 job_is "$b" reason ProvisioningLimit && job_is "$b" reasons.0.have 1 && job_is "$b" reasons.0.need 1 && job_is "$b" state PENDING &&
	gpuq pools --json few >pool.json && test "$(json state <pool.json)" = full && test "$(json requests <pool.json)" = 1 && n_of "$b" 0 &&
	then_becomes serve && job_becomes "$a" RUNNING 60 && job_becomes "$b" PROVISIONING 60 && n_of "$b" 1 && gpuq cancel --me &&
	wait_for 60 no_requests && wait_for 60 no_nodes
'

# all_provision N: there are so many jobs, and nodes were requested for each; nodes_asked: of all requests
all_provision() {
	gpuq queue -h -o STATE >states.out && test "$(grep -c PROVISIONING states.out)" = "$1" && test "$(grep -c . states.out)" = "$1"
}
nodes_asked() {
	kube list "$group/provisioningrequests" spec.podSets.0.count >counts.out && awk "{ n += \$1 } END { print n + 0 }" counts.out
}

test_expect_success 'AC-DWS-14: 3, 3, 2 and 8 devices are two nodes' '
	sleep 4 && becomes accept && for n in 3 3 2 8; do
		grow "gpus: $n\ncpus: 1\ntime: 1h" || return 1
	done >jobs && wait_for 30 all_provision 4 && test "$(nodes_asked)" = 2 &&
	then_becomes serve && for a in $(cat jobs); do
		job_becomes "$a" RUNNING 60 || return 1
	done && gpuq cancel --me && wait_for 60 no_requests && wait_for 60 no_nodes
'

test_expect_success 'AC-DWS-15: what is free is used first, and one request follows for the node that is missing' '
	cluster node here gpus=8 cpu=96 memory=1Ti label=cloud.google.com/gke-nodepool=big && wait_for 30 node_is here idle && wait_for 30 node_frees here 8 &&
	becomes accept && a=$(grow "gpus: 1\ncpus: 1\ntime: 1h\narray: 0-11") && wait_for 30 node_frees here 0 &&
	wait_for 30 eval "test \$(nodes_asked) = 1" &&
	gpuq cancel "$a" && wait_for 60 no_requests && n_of "$a-8" 1
'

test_expect_success 'AC-DWS-11: a launcher without devices runs elsewhere, the request is for the workers' '
	cluster node cpus gpus=0 cpu=8 memory=64Gi && wait_for 30 node_is cpus idle && becomes serve && a=$(fake_job "queue: dws\nflavor: spare\ntime: 1h\ngroups:\n- {name: launcher, pods: 1, cpus: 1}\n- {name: worker, pods: 2, gpus: 8, cpus: 1}\n$(fate hang=true)") &&
	job_becomes "$a" RUNNING 60 && grep -e "-$a-ask.* count=2 " scaler/log && n_of "$a" 1 && pods_of "$a" spec.nodeName >out &&
	test "$(grep -cx cpus out)" = 1 && gpuq cancel "$a" && wait_for 60 no_requests
'

test_expect_success 'AC-DWS-4: what is there is used first; a job takes its request back when what is there becomes free' '
	becomes accept && a=$(grow_on "[big, spare]" "gpus: 8\ntime: 1h") && job_becomes "$a" RUNNING 60 && b=$(grow_on "[big, spare]" "gpus: 8\ntime: 1h") &&
	job_becomes "$b" PROVISIONING 60 && gpuq cancel "$a" && job_becomes "$b" RUNNING 60 && job_is "$b" flavor big && wait_for 60 no_requests &&
	gpuq cancel "$b"
'

test_expect_success 'nothing was overcommitted' '
	nothing_was_overcommitted
'

test_done
