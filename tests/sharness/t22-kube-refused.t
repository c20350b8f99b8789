#!/bin/sh
test_description='real control plane: what operators break refuses jobs for a while, and fails none'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

# Queued jobs in each situation; a thousand when asked: REFUSED_JOBS=1000 REFUSED_GPUS=48 GPUQ_TEST_TIMEOUT=7200.
jobs=${REFUSED_JOBS:-24}
last=$((jobs - 1))
# Of each of two nodes: as many run at once, and so many are asked for before the first is refused.
gpus=${REFUSED_GPUS:-8}
patience=$((120 + jobs))

# Each stands by itself; REFUSED_SLIPS="right secret" tries these alone.
for slip in right missing ending account class runtime webhook security quota full secret mount image kubelet health; do
	case " ${REFUSED_SLIPS:-$slip} " in
	*" $slip "*) test_set_prereq "$slip" ;;
	esac
done

binding() {
	cat <<-EOF
		apiVersion: rbac.authorization.k8s.io/v1
		kind: RoleBinding
		metadata: {name: gpuqd-jobs, namespace: $1}
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gpuqd-jobs}
		subjects:
		- {kind: ServiceAccount, name: gpuqd, namespace: gpuq-system}
	EOF
}

# space NAME: a namespace in which gpuqd may run jobs
space() {
	printf -- '---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n' "$1"
	binding "$1"
}

for name in rights goes lacks strict tight; do
	space $name
done >rights.yaml

cat >site.yaml <<'END'
version: 1
queues:
- {name: default}
- {name: rights, namespace: rights}
- {name: goes, namespace: goes}
- {name: never, namespace: never}
- {name: account, namespace: lacks, service_account: runner}
- {name: class, namespace: lacks, priority_class: batch-low}
- {name: runtime, namespace: lacks}
- {name: strict, namespace: strict}
- {name: webhook, namespace: lacks}
- {name: tight, namespace: tight}
END

cluster_for_gpuqd --with "$PWD/rights.yaml" --nodes 2 --gpus "$gpus"

# queued QUEUE: an array of $jobs elements
queued() {
	fake_job "queue: $1\ngpus: 1\narray: 0-$last\n$(fate run=100ms)"
}

# ended_as JOB STATE: how many elements
ended_as() {
	gpuq history --json -j "$1" --limit 100000 | grep '"array_index":[0-9]' | grep -c "\"state\":\"$2\""
}

# completed JOB N
completed() {
	completed_got=$(ended_as "$1" COMPLETED)
	[ "$completed_got" = "$2" ] || { echo "$completed_got of $2 elements of job $1 have completed"; return 1; }
}

# none_failed JOB: what ended has completed
none_failed() {
	[ "$(gpuq history --json -j "$1" --limit 100000 | grep -c '"array_index":[0-9]')" = "$(ended_as "$1" COMPLETED)" ] ||
		{ gpuq history -j "$1" | sort | uniq -c | tail -n 5; return 1; }
}

# refuses JOB OBJECT: it is pending for this object, and nothing of it has failed
refuses() {
	gpuq queue --json -j "$1" >queue.out && grep -q '"reason":"ClusterRefused"' queue.out &&
		grep -qF "\"object\":\"$2\"" queue.out || { cat queue.out; return 1; }
	none_failed "$1"
}

# goes_on JOB: all of it completes
goes_on() {
	wait_for $patience completed "$1" $jobs && none_failed "$1"
}

test_expect_success 'a daemon with queues' '
	start_kube_gpuqd --site "$PWD/site.yaml" && wait_for 60 node_is node2 idle
'

test_expect_success right 'a RoleBinding is gone for a while: the jobs wait, and say which right is missing' '
	kube delete rights/rolebindings/gpuqd-jobs && id=$(queued rights) &&
	wait_for 60 refuses "$id" "right/create pods" && gpuq why "${id}_0" >out && says out "ClusterRefused" &&
	says out "cannot create resource" && says out "operator"
'

test_expect_success right 'operators are told, once: log, status, doctor' '
	test "$(grep -c "cluster.refused.*right/create" gpuqd.log)" = 1 &&
	gpuq status --json | json cluster.refused.0.object >object && says object "right/create pods" &&
	gpuq status >out && says out "right/create pods" && says out "cannot create resource" &&
	{ gpuq doctor >out || :; } && says out "right/create pods"
'

test_expect_success right 'after 40 s no job has failed, and few requests were sent' '
	sleep 40 && none_failed "$id" && test "$(grep -c "pod.refused" gpuqd.log)" -le $((2 * gpus + 4))
'

test_expect_success right 'it is given again: all go on' '
	binding rights >again.yaml && kube apply -f again.yaml && goes_on "$id" &&
	gpuq events "${id}_0" >out && says out "job.trouble"
'

# Where nothing gives gpuqd the right, that it is missing comes first.
everywhere() {
	cat <<-EOF
		apiVersion: rbac.authorization.k8s.io/v1
		kind: ClusterRoleBinding
		metadata: {name: everywhere}
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gpuqd-jobs}
		subjects:
		- {kind: ServiceAccount, name: gpuqd, namespace: gpuq-system}
	EOF
}

test_expect_success missing 'the namespace is missing' '
	everywhere >everywhere.yaml && kube apply -f everywhere.yaml && id=$(queued never) &&
	wait_for 60 refuses "$id" namespace/never && space never >again.yaml &&
	kube apply -f again.yaml && goes_on "$id" && kube delete clusterrolebindings/everywhere
'

test_expect_success ending 'the namespace is Terminating, then made anew' '
	echo "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"stays\", \"finalizers\": [\"gpuq.test/stays\"]}}" |
	kube create goes/configmaps - && kube delete namespaces/goes && id=$(queued goes) &&
	wait_for 60 refuses "$id" namespace/goes &&
	kube patch goes/configmaps/stays "{\"metadata\": {\"finalizers\": null}}" &&
	kube wait namespaces/goes gone --timeout 120 && space goes >again.yaml && kube apply -f again.yaml && goes_on "$id"
'

test_expect_success account 'the ServiceAccount of the queue is missing' '
	id=$(queued account) && wait_for 60 refuses "$id" serviceaccount/runner &&
	echo "{\"apiVersion\": \"v1\", \"kind\": \"ServiceAccount\", \"metadata\": {\"name\": \"runner\"}}" |
	kube create lacks/serviceaccounts - && goes_on "$id"
'

test_expect_success class 'its PriorityClass is missing' '
	id=$(queued class) && wait_for 60 refuses "$id" priorityclass/batch-low &&
	echo "{\"apiVersion\": \"scheduling.k8s.io/v1\", \"kind\": \"PriorityClass\", \"metadata\": {\"name\": \"batch-low\"}, \"value\": 10}" |
	kube create priorityclasses - && goes_on "$id"
'

cat >runtime.yaml <<END
apiVersion: batch/v1
kind: Job
metadata: {name: boxed, labels: {kueue.x-k8s.io/queue-name: runtime}}
spec:
  completions: $jobs
  parallelism: 8
  template:
    metadata: {annotations: {gpuq.test/run: 100ms}}
    spec:
      runtimeClassName: boxed
      restartPolicy: Never
      containers:
      - {name: main, image: $kube_image, command: [sleep, "1"], resources: {limits: {nvidia.com/gpu: 1}}}
END

test_expect_success runtime 'a RuntimeClass is missing: other jobs of the queue start' '
	id=$(submit runtime.yaml) && wait_for 60 refuses "$id" runtimeclass/boxed &&
	other=$(fake_job "queue: runtime\ngpus: 1\n$(fate run=100ms)") && job_becomes "$other" COMPLETED 60 &&
	kube raw POST /apis/node.k8s.io/v1/runtimeclasses \
		"{\"apiVersion\": \"node.k8s.io/v1\", \"kind\": \"RuntimeClass\", \"metadata\": {\"name\": \"boxed\"}, \"handler\": \"runc\"}" &&
	wait_for $((patience + 4 * jobs)) completed "$id" $jobs && none_failed "$id"
'

hook() {
	cat <<-EOF
		{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		 "metadata": {"name": "checker"}, "webhooks": [{"name": "checker.example.org", "sideEffects": "None",
		  "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 2,
		  "clientConfig": {"url": "https://127.0.0.1:9/"},
		  "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "lacks"}},
		  "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}]}
	EOF
}
hooks=/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations

test_expect_success webhook 'a webhook is down' '
	kube raw POST $hooks "$(hook)" && sleep 3 && id=$(queued webhook) &&
	wait_for 60 refuses "$id" webhook/checker.example.org && kube raw DELETE $hooks/checker && goes_on "$id"
'

test_expect_success security 'the namespace enforces a stricter Pod Security Standard than its queue' '
	kube patch namespaces/strict "{\"metadata\": {\"labels\": {\"pod-security.kubernetes.io/enforce\": \"restricted\"}}}" &&
	id=$(queued strict) && wait_for 60 refuses "$id" namespace/strict && gpuq why "${id}_0" >out && says out "PodSecurity" &&
	kube patch namespaces/strict "{\"metadata\": {\"labels\": {\"pod-security.kubernetes.io/enforce\": null}}}" &&
	goes_on "$id"
'

quota() {
	echo "{\"apiVersion\": \"v1\", \"kind\": \"ResourceQuota\", \"metadata\": {\"name\": \"rq\"}, \"spec\": {\"hard\": {$1}}}" |
		kube create tight/resourcequotas - && sleep 3
}

test_expect_success quota 'a quota that wants limits which no job states' '
	quota "\"limits.cpu\": 64" && id=$(queued tight) && wait_for 60 refuses "$id" resourcequota/rq &&
	kube delete tight/resourcequotas/rq && goes_on "$id"
'

test_expect_success full 'a quota that is used up is NamespaceQuota, as ever' '
	quota "\"requests.nvidia.com/gpu\": 0" && id=$(queued tight) &&
	wait_for 60 eval "gpuq queue --json -j $id | grep -q NamespaceQuota" && kube delete tight/resourcequotas/rq &&
	goes_on "$id"
'

# An object that only kubelets miss: kwok plays the kubelet.
cat >short.yaml <<'END'
version: 1
queues:
- {name: short, namespace: gpuq-jobs, start_timeout: 15s}
END

test_expect_success secret 'a Secret is missing: the object of Starting at once, of ClusterRefused after the start timeout' '
	gpuq apply -f short.yaml && id=$(fake_job "queue: short\ngpus: 1\n$(fate "missing=secret \"tokens\"")") &&
	wait_for 30 job_is "$id" reasons.0.object secret/tokens && job_is "$id" reason Starting &&
	job_is "$id" reasons.0.who operator && wait_for 60 job_is "$id" reason ClusterRefused &&
	job_is "$id" reasons.0.object secret/tokens && job_is "$id" state PENDING &&
	gpuq status >out && says out secret/tokens
'

test_expect_success secret 'it is tried again, and runs once the Secret is there' '
	wait_for 120 job_is "$id" reason Starting && pod=$(the_pod "$id") &&
	kube patch "$pod" "{\"metadata\": {\"annotations\": {\"gpuq.test/missing\": null}}}" &&
	job_becomes "$id" COMPLETED 60
'

# both_of JOB JOB N: so many of each have completed, while kubelets find on each try what they missed; they are
# told pod by pod, which takes longer than a kubelet does
both_of() {
	kube patch-all "gpuq-jobs/pods?labelSelector=gpuq.io/job" "metadata.annotations.[gpuq.test/missing]" \
		'{"metadata": {"annotations": {"gpuq.test/missing": null}}}' && completed "$1" "$3" && completed "$2" "$3"
}

# many_miss KIND NAME: an array whose pods lack it
many_miss() {
	fake_job "queue: short\ngpus: 1\narray: 0-$last\n$(fate run=100ms "missing=$1 \"$2\"")"
}

test_expect_success secret 'a Secret is missing that all elements of an array need, and a ConfigMap that those of another do' '
	id=$(many_miss secret keys) && other=$(many_miss configmap params) &&
	wait_for 60 refuses "$id" secret/keys && wait_for 60 refuses "$other" configmap/params &&
	wait_for 60 n_pods "$id" 0 && wait_for 60 n_pods "$other" 0 && gpuq status >out && says out secret/keys && says out configmap/params
'

test_expect_success secret 'one element is tried now and then; then all of both complete' '
	sed "s/15s/10m/" short.yaml >long.yaml && gpuq apply -f long.yaml &&
	wait_for $((patience + 4 * jobs)) both_of "$id" "$other" $jobs &&
	none_failed "$id" && none_failed "$other"
'

# what its kubelet would report of a pod
event_of() {
	event_uid=$(kube get "$1" metadata.uid) && cat <<-EOF
		{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "mount-$event_uid"}, "type": "Warning", "reason": "FailedMount",
		 "message": "MountVolume.SetUp failed for volume \"data\" : configmap \"settings\" not found", "lastTimestamp": "2026-01-01T00:00:00Z",
		 "involvedObject": {"kind": "Pod", "namespace": "gpuq-jobs", "name": "${1##*/}", "uid": "$event_uid"}}
	EOF
}

test_expect_success mount 'a ConfigMap that cannot be mounted' '
	kube apply -f "$test_source/etc/kubernetes/optional/events.yaml" && id=$(fake_job "gpus: 1\n$(fate start=300s)") &&
	wait_for 60 n_pods "$id" 1 && pod=$(the_pod "$id") && event_of "$pod" | kube create gpuq-jobs/events - >/dev/null &&
	wait_for 60 job_is "$id" reasons.0.object configmap/settings && job_is "$id" reasons.0.who operator &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED 60
'

test_expect_success image 'an image that cannot be pulled is told at once, and is the business of its user' '
	id=$(fake_job "gpus: 1\n$(fate image=missing)") && wait_for 30 job_is "$id" reasons.0.object ImagePullBackOff &&
	job_is "$id" reasons.0.who user && gpuq why "$id" >out && says out "ImagePullBackOff" && says out "Back-off pulling" &&
	gpuq queue -j "$id" >out && says out "ImagePullBackOff" && gpuq events "$id" >out && says out "job.trouble"
'

test_expect_success image 'two minutes later the job fails, though nothing more is heard of its pod' '
	job_becomes "$id" FAILED 150 && gpuq status "$id" >out && says out "Back-off pulling"
'

# ---- refusals of kubelets ----

# what both that follow need
third_node() {
	node_is node3 idle || { cluster node node3 gpus=8 3>&- 4>&- 5>&- && wait_for 60 node_is node3 idle; }
}

test_expect_success kubelet 'a pod that three kubelets refuse: its job is held, and names the word of the kubelet' '
	third_node && id=$(fake_job "gpus: 1\n$(fate reject=true)") && wait_for 120 job_is "$id" reason HeldRetries &&
	job_is "$id" reasons.0.object UnexpectedAdmissionError && gpuq why "$id" >out && says out "Allocate failed" &&
	test "$(job "$id" attempt)" = 2 && ! grep -q "node.refused_pod" gpuqd.log
'

test_expect_success kubelet 'other jobs are not kept from those nodes' '
	other=$(fake_job "gpus: 8\narray: 0-2\n$(fate run=100ms)") && wait_for 120 completed "$other" 3 &&
	gpuq nodes --json >nodes.out && ! grep -q "\"suspect\"" nodes.out
'

test_expect_success kubelet 'it is released by hand, and tried anew' '
	gpuq release "$id" && wait_for 60 eval "test \$(job $id attempt) -ge 3" && wait_for 120 job_is "$id" reason HeldRetries &&
	gpuq cancel "$id"
'

# ---- nodes that are not well ----

# condition NODE TYPE STATUS: as an agent on the node reports it
condition() {
	kube patch "nodes/$1/status" --type strategic "{\"status\": {\"conditions\": [{\"type\": \"$2\", \"status\": \"$3\",
		\"reason\": \"Test\", \"message\": \"as a test says\", \"lastTransitionTime\": \"2026-01-01T00:00:00Z\",
		\"lastHeartbeatTime\": \"2026-01-01T00:00:00Z\"}]}}" >/dev/null
}

test_expect_success health 'a condition of a GPU keeps new work away, with a reason; what runs goes on' '
	third_node && a=$(fake_job "gpus: 1\nnodes: [node3]\n$(fate hang=true)") && job_becomes "$a" RUNNING 60 &&
	condition node3 GpuXidError True && wait_for 60 node_is node3 drain && gpuq nodes --json >out &&
	says out "a GPU reported an Xid error" && id=$(fake_job "gpus: 1\nnodes: [node3]\n$(fate run=100ms)") &&
	wait_for 60 job_is "$id" reason NodesUnavailable && job_is "$a" state RUNNING
'

test_expect_success health 'until it is over' '
	condition node3 GpuXidError False && job_becomes "$id" COMPLETED 60 && gpuq cancel "$a" && job_becomes "$a" CANCELLED 60
'

test_expect_success health 'a condition that the site names' '
	printf "version: 1\nhealth:\n- {condition: RackHot, reason: the rack is hot}\n" >health.yaml && gpuq apply -f health.yaml &&
	condition node3 RackHot True && wait_for 60 node_is node3 drained && gpuq nodes --json >out && says out "the rack is hot" &&
	gpuq export >out && says out RackHot && condition node3 RackHot False && wait_for 60 node_is node3 idle
'

test_expect_success 'nothing is refused any more, and nothing was over-committed' '
	gpuq status --json >status.out && test "$(json cluster.refused <status.out)" = "[]" &&
	stop_gpuqd && nothing_was_overcommitted
'

test_done
