#!/bin/sh
test_description="real control plane: one operator's slip of each kind fails no job (all of them: t22-kube-refused.t)"
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cat >site.yaml <<'END'
version: 1
queues:
- {name: default}
- {name: class, namespace: gpuq-jobs, priority_class: batch-low}
END

cluster_for_gpuqd --nodes 1 --gpus 8

binding=/apis/rbac.authorization.k8s.io/v1/namespaces/gpuq-jobs/rolebindings
hooks=/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations

# queued [QUEUE]: an array of four elements
queued() {
	fake_job "queue: ${1-default}\ngpus: 1\narray: 0-3\n$(fate run=100ms)"
}

# refuses JOB OBJECT: it is pending for this object
refuses() {
	gpuq queue --json -j "$1" >queue.out && grep -q '"reason":"ClusterRefused"' queue.out &&
		grep -qF "\"object\":\"$2\"" queue.out || { cat queue.out; return 1; }
}

# goes_on JOB: all its elements complete
goes_on() {
	exits 0 gpuq wait "$1" && test "$(gpuq history --json -j "$1" | grep -c '"state":"COMPLETED"')" -ge 4
}

# hook: a webhook that does not answer, for new pods of gpuq-jobs
hook() {
	cat <<-EOF
		{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		 "metadata": {"name": "checker"}, "webhooks": [{"name": "checker.example.org", "sideEffects": "None",
		  "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 1,
		  "clientConfig": {"url": "https://127.0.0.1:9/"},
		  "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gpuq-jobs"}},
		  "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}]}
	EOF
}

test_expect_success 'a daemon' '
	start_kube_gpuqd --site "$PWD/site.yaml" && wait_for 60 node_is node1 idle
'

test_expect_success 'a right: its RoleBinding is gone, and comes back' '
	kube raw GET $binding/gpuqd-jobs >was.json && kube delete gpuq-jobs/rolebindings/gpuqd-jobs && id=$(queued) &&
	wait_for 30 refuses "$id" "right/create pods" && gpuq why "${id}_0" >out && says out "cannot create resource" &&
	/usr/bin/python3 -c "
import json
binding = json.load(open(\"was.json\"))
binding[\"metadata\"] = {\"name\": \"gpuqd-jobs\"}
print(json.dumps(binding))" >again.json && kube create gpuq-jobs/rolebindings - <again.json && goes_on "$id"
'

test_expect_success 'an object: the PriorityClass of a queue is missing; other queues start jobs' '
	id=$(queued class) && wait_for 30 refuses "$id" priorityclass/batch-low && other=$(queued) && goes_on "$other" &&
	echo "{\"apiVersion\": \"scheduling.k8s.io/v1\", \"kind\": \"PriorityClass\", \"metadata\": {\"name\": \"batch-low\"}, \"value\": 10}" |
	kube create priorityclasses - && goes_on "$id"
'

test_expect_success 'a server: a webhook is down' '
	kube raw POST $hooks "$(hook)" && sleep 2 && id=$(queued) && wait_for 30 refuses "$id" webhook/checker.example.org &&
	kube raw DELETE $hooks/checker && goes_on "$id"
'

test_expect_success 'a rule: a quota wants limits that no job states' '
	echo "{\"apiVersion\": \"v1\", \"kind\": \"ResourceQuota\", \"metadata\": {\"name\": \"rq\"}, \"spec\": {\"hard\": {\"limits.cpu\": 64}}}" |
	kube create gpuq-jobs/resourcequotas - && sleep 2 && id=$(queued) && wait_for 30 refuses "$id" resourcequota/rq &&
	kube delete gpuq-jobs/resourcequotas/rq && goes_on "$id"
'

test_expect_success 'none has failed, each was told once, nothing is refused any more' '
	gpuq history --json --limit 1000 >out && ! grep -E "\"state\":\"(FAILED|NODE_FAIL)\"" out &&
	test "$(grep -c cluster.refused gpuqd.log)" = 4 && gpuq status --json >status.out &&
	test "$(json cluster.refused <status.out)" = "[]"
'

test_expect_success 'all nodes are not ready: a job waits for them, and is not Unsatisfiable' '
	cluster node-down node1 && wait_for 60 node_is node1 down && id=$(fake_job "gpus: 1\n$(fate run=100ms)") &&
	wait_for 60 job_is "$id" reason NodesUnavailable && cluster node-up node1 && job_becomes "$id" COMPLETED 60
'

# gpuqd is started anew with a token that the apiserver does not know.
test_expect_success 'credentials that are known no more are named as such' '
	stop_gpuqd && sed "s/token: .*/token: expired/" "$TMPDIR/k/gpuqd.kubeconfig" >expired.kubeconfig &&
	start_gpuqd --cluster kube --kubeconfig "$PWD/expired.kubeconfig" --namespace gpuq-jobs &&
	wait_for 30 eval "gpuq status --json | grep -q \"credentials of gpuqd have expired\"" &&
	{ gpuq doctor >out || :; } && says out "credentials of gpuqd have expired" && stop_gpuqd && nothing_was_overcommitted
'

test_done
