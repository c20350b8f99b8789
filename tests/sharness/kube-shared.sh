# kube.sh - a real control plane for a whole-system test; read after lib.sh
#
# The cluster is that of with-kube, or one of this test's own when it is run by hand or needs something
# else ($kube_cluster: options of tests/kube/cluster start). Each test has a
# namespace and nodes of its own; both go with it. gpuqd has the rights of etc/kubernetes/base and no
# more: it is no administrator.

if [ -n "${GPUQ_KUBE_SKIP:-}" ]; then
	skip_all=$GPUQ_KUBE_SKIP
	test_done
fi
KUBE_TOOLS=$test_source/tests/kube
if [ -z "${GPUQ_KUBE_DIR:-}" ] || [ -n "${kube_cluster:-}" ]; then
	GPUQ_KUBE_DIR=$TMPDIR/kube
	own_cluster=yes
	env -u GPUQ_TEST_TAG "$KUBE_TOOLS/cluster" start "$GPUQ_KUBE_DIR" ${kube_cluster:---nodes 0} >cluster.out 2>&1 &&
		"$KUBE_TOOLS/cluster" gpuqd-kubeconfig "$GPUQ_KUBE_DIR" "$test_source/etc/kubernetes/base" \
			"$test_source/examples/role-dws.yaml" >>cluster.out 2>&1 || {
		skip_all=$(tail -n 1 cluster.out)
		cat cluster.out
		"$KUBE_TOOLS/cluster" stop "$GPUQ_KUBE_DIR" >/dev/null 2>&1
		test_done
	}
fi
eval "$("$KUBE_TOOLS/cluster" env "$GPUQ_KUBE_DIR")"
test_namespace=$(basename "$0" .t | cut -d- -f1)-$$
test_nodes=

# The same without the answer.
kube_quiet() {
	kube "$@" >kube.out || { cat kube.out; return 1; }
}

kube() {
	"$KUBE_TOOLS/kube" "$@"
}

cluster() {
	cluster_verb=$1
	shift
	# A server that it starts is the cluster's, not this test's: it must not carry the mark of what ends.
	env -u GPUQ_TEST_TAG "$KUBE_TOOLS/cluster" "$cluster_verb" "$GPUQ_KUBE_DIR" "$@"
}

# What lib.sh calls at the end.
end_cluster() {
	for end_node in $test_nodes; do
		cluster delete-node "$end_node" >/dev/null 2>&1
	done
	kube delete "namespaces/$test_namespace" >/dev/null 2>&1
	[ -z "${own_cluster:-}" ] || "$KUBE_TOOLS/cluster" stop "$GPUQ_KUBE_DIR" >/dev/null 2>&1
}

# make_namespace [NAME]: with the rights that gpuqd needs there
make_namespace() {
	cat >namespace.yaml <<-END
		apiVersion: v1
		kind: Namespace
		metadata: {name: ${1:-$test_namespace}}
		---
		apiVersion: rbac.authorization.k8s.io/v1
		kind: RoleBinding
		metadata: {name: gpuqd-jobs, namespace: ${1:-$test_namespace}}
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gpuqd-jobs}
		subjects: [{kind: ServiceAccount, name: gpuqd, namespace: gpuq-system}]
	END
	kube apply -f namespace.yaml && wait_for 30 kube get "${1:-$test_namespace}/serviceaccounts/default"
}

# make_nodes NAME... [settings of tests/kube/fakenode]: names get the namespace in front
make_nodes() {
	for make_name in "$@"; do
		case $make_name in
		*=*) ;;
		*)
			test_nodes="$test_nodes $test_namespace-$make_name"
			make_list="${make_list-} $test_namespace-$make_name"
			;;
		esac
	done
	for make_name in $make_list; do
		make_settings "$make_name" "$@" || return 1
	done
	make_list=
}

make_settings() {
	make_node=$1
	shift
	make_n=$#
	while [ "$make_n" -gt 0 ]; do
		case $1 in
		*=*) set -- "$@" "$1" ;;
		esac
		shift
		make_n=$((make_n - 1))
	done
	cluster node "$make_node" "$@"
}

start_kube_gpuqd() {
	start_gpuqd --cluster kube --kubeconfig "$GPUQD_KUBECONFIG" --namespace "$test_namespace" "$@"
}

# pod_job NAME GPUS [KEY=VALUE]...: submits a Pod manifest with these annotations, prints the id.
# $pod_fields: more fields of its spec, in JSON, each followed by a comma.
pod_fields=
pod_job() {
	pod_name=$1 pod_gpus=$2
	shift 2
	pod_notes=
	for pod_note in "$@"; do
		pod_notes="$pod_notes${pod_notes:+, }\"${pod_note%%=*}\": \"${pod_note#*=}\""
	done
	submit - <<-END
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$pod_name", "annotations": {$pod_notes}},
		 "spec": {$pod_fields "restartPolicy": "Never", "containers": [
		  {"name": "main", "image": "docker.io/local/busybox:1", "command": ["true"],
		   "resources": {"limits": {"nvidia.com/gpu": $pod_gpus}}}]}}
	END
}

# pods_of JOB EXPR: of the pods that the cluster has of a job, one a line
pods_of() {
	kube raw GET "/api/v1/namespaces/$test_namespace/pods?labelSelector=gpuq.io/job%3D$1" 2>/dev/null >pods.json &&
		/usr/bin/python3 -c '
import json, sys
for pod in json.load(open("pods.json"))["items"]:
    v = pod
    for key in sys.argv[1].split("."): v = v.get(key) if isinstance(v, dict) else None
    print(v)' "$2"
}

n_pods_of() {
	pods_of "$1" metadata.name | grep -c gpuq-
}
