#!/bin/sh
test_description='real control plane: what the apiserver adds to pods is charged: LimitRange, RuntimeClass, policies'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cat >site.yaml <<'END'
version: 1
queues:
- {name: plain}
- {name: limited, namespace: limited}
- {name: meshed, namespace: meshed}
END

# A namespace of jobs: its queue's pods may be made there.
cat >spaces.yaml <<'END'
apiVersion: v1
kind: Namespace
metadata: {name: limited}
---
apiVersion: v1
kind: Namespace
metadata: {name: meshed, labels: {mesh: "on"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: gpuqd-jobs, namespace: limited}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gpuqd-jobs}
subjects: [{kind: ServiceAccount, name: gpuqd, namespace: gpuq-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: gpuqd-jobs, namespace: meshed}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gpuqd-jobs}
subjects: [{kind: ServiceAccount, name: gpuqd, namespace: gpuq-system}]
END

# MutatingAdmissionPolicy is of version v1 from Kubernetes 1.36 on; before, it has to be switched on.
case ${GPUQ_KUBE_MINOR:-} in
1.35)
	policies=admissionregistration.k8s.io/v1beta1
	cluster_for_gpuqd --apiserver-flag --feature-gates=MutatingAdmissionPolicy=true \
		--apiserver-flag --runtime-config=$policies=true ;;
*)
	policies=admissionregistration.k8s.io/v1
	cluster_for_gpuqd ;;
esac

# n_on NODE N: so many pods of jobs are there
n_on() {
	n_on_got=$(for n_on_space in gpuq-jobs limited meshed; do
		kube list $n_on_space/pods metadata.name,spec.nodeName,status.phase
	done | grep -v -E "Succeeded|Failed" | grep -c -w "$1")
	[ "$n_on_got" = "$2" ] || { echo "$1 has $n_on_got pods, not $2"; return 1; }
}

hca_free() {
	[ "$(gpuq nodes --json | grep "\"name\":\"hca\"" | json resources.rdma/hca.free)" = "$1" ]
}

all_gone() {
	for all_space in gpuq-jobs limited meshed; do
		test -z "$(kube list $all_space/pods metadata.name)" || return 1
	done
}

test_expect_success 'a node of 10 CPUs and one of 64 with a label; queues in three namespaces' '
	cluster node small cpu=10 memory=64Gi label=size=small && kube apply -f spaces.yaml &&
	wait_for 60 kube get limited/serviceaccounts/default && wait_for 60 kube get meshed/serviceaccounts/default &&
	printf "finished_pod_keep: 1s\n" >gpuqd.yaml &&
	start_kube_gpuqd --config "$PWD/gpuqd.yaml" --site "$PWD/site.yaml" && wait_for 60 node_is small idle
'

# ---- LimitRange ----

test_expect_success 'the requests that a LimitRange adds are counted before the pod is made' '
	kube apply -f - <<-\END &&
	apiVersion: v1
	kind: LimitRange
	metadata: {name: defaults, namespace: limited}
	spec: {limits: [{type: Container, defaultRequest: {cpu: "4", memory: 1Gi}}]}
	END
	sleep 1 && a=$(fake_job "queue: limited\ngpus: 1\n$(fate hang=true)") && b=$(fake_job "queue: limited\ngpus: 1\n$(fate hang=true)") &&
	job_becomes "$a" RUNNING 120 && job_becomes "$b" RUNNING 120 &&
	c=$(fake_job "queue: limited\ngpus: 1\n$(fate hang=true)") && wait_for 60 job_is "$c" reason Resources && n_on small 2
'

test_expect_success 'a job of a namespace without one still fits beside them' '
	d=$(fake_job "queue: plain\ngpus: 1\n$(fate run=1s)") && job_becomes "$d" COMPLETED 120 && job_is "$c" state PENDING
'

test_expect_success 'a restart counts the same' '
	kill_gpuqd && start_kube_gpuqd --config "$PWD/gpuqd.yaml" && wait_for 60 job_is "$c" reason Resources && n_on small 2
'

test_expect_success 'the LimitRange is gone: what runs keeps what it has, the next pod asks nothing' '
	kube delete limited/limitranges/defaults && job_becomes "$c" RUNNING 120 && n_on small 3 &&
	gpuq cancel "$a" "$b" "$c" && wait_for 120 all_gone
'

test_expect_success 'a resource beside CPU and memory has a default as well: local disk' '
	kube apply -f - <<-\END &&
	apiVersion: v1
	kind: LimitRange
	metadata: {name: disk, namespace: limited}
	spec: {limits: [{type: Container, defaultRequest: {ephemeral-storage: 400Gi}}]}
	END
	sleep 1 && a=$(fake_job "queue: limited\ngpus: 1\n$(fate hang=true)") && b=$(fake_job "queue: limited\ngpus: 1\n$(fate hang=true)") &&
	job_becomes "$a" RUNNING 120 && job_becomes "$b" RUNNING 120 &&
	c=$(fake_job "queue: limited\ngpus: 1\n$(fate hang=true)") && wait_for 60 job_is "$c" reason Resources && n_on small 2 &&
	kube delete limited/limitranges/disk && job_becomes "$c" RUNNING 120 && gpuq cancel "$a" "$b" "$c" && wait_for 120 all_gone
'

# ---- RuntimeClass ----

test_expect_success 'the overhead of a RuntimeClass is counted, and its nodes are the only ones' '
	cluster node big cpu=64 memory=64Gi label=size=big && wait_for 60 node_is big idle &&
	kube apply -f - <<-\END &&
	apiVersion: node.k8s.io/v1
	kind: RuntimeClass
	metadata: {name: sandboxed}
	handler: runc
	overhead: {podFixed: {cpu: "6", memory: 1Gi}}
	scheduling: {nodeSelector: {size: small}}
	END
	sleep 1 && a=$(fake_job "queue: plain\ngpus: 1\nruntime_class: sandboxed\n$(fate hang=true)") && job_becomes "$a" RUNNING 120 &&
	job_is "$a" pods.0.node small && b=$(fake_job "queue: plain\ngpus: 1\nruntime_class: sandboxed\n$(fate hang=true)") &&
	wait_for 60 job_is "$b" reason Resources && n_on small 1 && n_on big 0
'

test_expect_success 'a manifest that names the class is placed alike' '
	cat >pod.yaml <<-END &&
	apiVersion: v1
	kind: Pod
	metadata: {name: m, annotations: {gpuq.test/hang: "true"}, labels: {kueue.x-k8s.io/queue-name: plain}}
	spec:
	  runtimeClassName: sandboxed
	  containers: [{name: main, image: $kube_image, command: [sleep, "1"], resources: {limits: {nvidia.com/gpu: 1}}}]
	END
	c=$(submit pod.yaml) && wait_for 60 job_is "$c" reason Resources && gpuq cancel "$b" && gpuq cancel "$a" &&
	job_becomes "$c" RUNNING 120 && job_is "$c" pods.0.node small && gpuq cancel "$c" && wait_for 120 all_gone
'

test_expect_success 'the taints that a RuntimeClass tolerates do not keep its pods away, but all others' '
	cluster node boxed cpu=64 memory=64Gi taint=sandbox=strong:NoSchedule label=size=boxed && wait_for 60 node_is boxed idle &&
	kube apply -f - <<-\END &&
	apiVersion: node.k8s.io/v1
	kind: RuntimeClass
	metadata: {name: boxed}
	handler: runc
	scheduling:
	  nodeSelector: {size: boxed}
	  tolerations: [{key: sandbox, operator: Equal, value: strong, effect: NoSchedule}]
	END
	sleep 1 && a=$(fake_job "queue: plain\ngpus: 1\nnode_selector: {size: boxed}\n$(fate hang=true)") &&
	wait_for 60 job_is "$a" reason Unsatisfiable && c=$(fake_job "queue: plain\ngpus: 1\nruntime_class: boxed\n$(fate hang=true)") &&
	job_becomes "$c" RUNNING 120 && job_is "$c" pods.0.node boxed && job_is "$a" state PENDING
'

test_expect_success 'a toleration that is taken from the class holds for the next pod' '
	kube patch runtimeclasses/boxed "{\"scheduling\": {\"tolerations\": null}}" &&
	d=$(fake_job "queue: plain\ngpus: 1\nruntime_class: boxed\n$(fate hang=true)") && wait_for 60 job_is "$d" reason Unsatisfiable &&
	job_is "$c" state RUNNING && gpuq cancel "$a" "$c" "$d" && wait_for 120 all_gone && cluster delete-node boxed &&
	cluster delete-node big
'

test_expect_success 'what an overhead takes of another resource is counted, and printed' '
	cluster node hca gpus=4 cpu=32 memory=64Gi rdma/hca=3 && wait_for 60 hca_free 3 &&
	kube apply -f - <<-\END &&
	apiVersion: node.k8s.io/v1
	kind: RuntimeClass
	metadata: {name: wired}
	handler: runc
	overhead: {podFixed: {rdma/hca: "2"}}
	END
	sleep 1 && a=$(fake_job "queue: plain\ngpus: 1\nruntime_class: wired\n$(fate hang=true)") && job_becomes "$a" RUNNING 120 &&
	job_is "$a" pods.0.node hca && job_is "$a" resources.rdma/hca 2 && hca_free 1 &&
	b=$(fake_job "queue: plain\ngpus: 1\nresources: {rdma/hca: 2}\n$(fate hang=true)") && wait_for 60 job_is "$b" reasons.0.object rdma/hca &&
	gpuq cancel "$a" && job_becomes "$b" RUNNING 120 && gpuq cancel "$b" && wait_for 120 all_gone
'

test_expect_success 'an overhead with a device keeps its jobs waiting, and they name it; without it they run' '
	kube patch runtimeclasses/wired "{\"overhead\": {\"podFixed\": {\"nvidia.com/gpu\": \"1\", \"rdma/hca\": null}}}" &&
	sleep 1 && a=$(fake_job "queue: plain\ngpus: 1\nruntime_class: wired\n$(fate hang=true)") && wait_for 60 job_is "$a" reason ClusterRefused &&
	job_is "$a" reasons.0.object runtimeclass/wired && gpuq why "$a" >why && says why "its overhead takes nvidia.com/gpu" &&
	b=$(fake_job "queue: plain\ngpus: 4\nnode_selector: {kubernetes.io/hostname: hca}\n$(fate hang=true)") && job_becomes "$b" RUNNING 120 &&
	job_is "$a" state PENDING && kube patch runtimeclasses/wired "{\"overhead\": null}" &&
	job_becomes "$a" RUNNING 120 && gpuq cancel "$a" "$b" && wait_for 120 all_gone
'

# ---- devices by default ----

test_expect_success 'a LimitRange gives pods no devices and adapters beyond those of their jobs' '
	kube apply -f - <<-\END &&
	apiVersion: v1
	kind: LimitRange
	metadata: {name: devices, namespace: limited}
	spec:
	  limits:
	  - {type: Container, default: {nvidia.com/gpu: 1, rdma/hca: 1}, defaultRequest: {nvidia.com/gpu: 1, rdma/hca: 1}}
	END
	cat >two.yaml <<-END &&
	apiVersion: v1
	kind: Pod
	metadata: {name: two, annotations: {gpuq.test/hang: "true"}, labels: {kueue.x-k8s.io/queue-name: limited}}
	spec:
	  nodeSelector: {kubernetes.io/hostname: hca}
	  initContainers: [{name: first, image: $kube_image, command: [sleep, "1"]}]
	  containers:
	  - {name: main, image: $kube_image, command: [sleep, "1"], resources: {limits: {nvidia.com/gpu: 3}}}
	  - {name: side, image: $kube_image, command: [sleep, "1"]}
	END
	sleep 1 && a=$(submit two.yaml) && job_becomes "$a" RUNNING 120 && job_is "$a" pods.0.node hca &&
	b=$(fake_job "queue: limited\ncpus: 1\nnode_selector: {kubernetes.io/hostname: hca}\n$(fate hang=true)") &&
	c=$(fake_job "queue: limited\ngpus: 1\nnode_selector: {kubernetes.io/hostname: hca}\n$(fate hang=true)") &&
	job_becomes "$b" RUNNING 120 && job_becomes "$c" RUNNING 120 && hca_free 3 &&
	kube list limited/pods spec.containers,spec.initContainers >asked && says asked "rdma/hca" && test_must_fail grep "rdma/hca[^0-9a-z]*1" asked &&
	gpuq cancel "$a" "$b" "$c" && wait_for 120 all_gone && kube delete limited/limitranges/devices && cluster delete-node hca
'

# ---- what a policy adds ----

test_expect_success 'a container that a policy adds is counted once a pod shows it, and before the next is made' '
	kube apply -f - <<-END &&
	apiVersion: $policies
	kind: MutatingAdmissionPolicy
	metadata: {name: sidecar}
	spec:
	  failurePolicy: Fail
	  reinvocationPolicy: Never
	  matchConstraints:
	    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
	  mutations:
	  - patchType: JSONPatch
	    jsonPatch:
	      expression: >-
	        [JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{
	        name: "proxy", image: "docker.io/local/proxy:1", securityContext: Object.spec.containers.securityContext{allowPrivilegeEscalation: false},
	        resources: Object.spec.containers.resources{requests: {"cpu": "3"}}}}]
	---
	apiVersion: $policies
	kind: MutatingAdmissionPolicyBinding
	metadata: {name: sidecar}
	spec: {policyName: sidecar, matchResources: {namespaceSelector: {matchLabels: {mesh: "on"}}}}
	END
	sleep 2 && a=$(fake_job "queue: meshed\ngpus: 1\n$(fate hang=true)") && job_becomes "$a" RUNNING 120 &&
	pods_namespace=meshed && test "$(pods_of "$a" spec.containers.1.name)" = proxy && pods_namespace=gpuq-jobs &&
	b=$(fake_job "queue: meshed\ngpus: 1\n$(fate hang=true)") && job_becomes "$b" RUNNING 120 &&
	c=$(fake_job "queue: meshed\ngpus: 1\n$(fate hang=true)") && job_becomes "$c" RUNNING 120 &&
	d=$(fake_job "queue: meshed\ngpus: 1\n$(fate hang=true)") && wait_for 60 job_is "$d" reason Resources && n_on small 3
'

test_expect_success 'a restart learns it anew from the pods that run' '
	kill_gpuqd && start_kube_gpuqd --config "$PWD/gpuqd.yaml" && wait_for 60 job_is "$d" reason Resources && sleep 1 && n_on small 3 &&
	gpuq cancel "$a" "$b" "$c" && job_becomes "$d" RUNNING 120 && gpuq cancel "$d" && wait_for 120 all_gone
'

test_expect_success 'all of this is allowed by the base rights' '
	exits 0 gpuq doctor && ! grep -E "LimitRange|RuntimeClass|volumes|claims" out
'

# ---- a right that lacks ----

test_expect_success 'without the right to read them the feature is off, said once, named by doctor; jobs run' '
	kube get clusterroles/gpuqd-observe >role.json &&
	/usr/bin/python3 -c "
import json
role = json.load(open(\"role.json\"))
role[\"rules\"] = [r for r in role[\"rules\"] if \"limitranges\" not in r[\"resources\"]]
role[\"metadata\"] = {\"name\": \"gpuqd-observe\"}
json.dump(role, open(\"less.json\", \"w\"))" && kube apply -f less.json && kill_gpuqd && start_kube_gpuqd --config "$PWD/gpuqd.yaml" &&
	a=$(fake_job "queue: plain\ngpus: 1\n$(fate run=1s)") && job_becomes "$a" COMPLETED 120 &&
	{ gpuq doctor >out || :; } && says out "LimitRange adds: .* may not list limitranges" &&
	test "$(grep -c "kube.kind_off.*limitranges" gpuqd.log)" = 1
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
