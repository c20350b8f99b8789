#!/bin/sh
# selftest.t - show that the test clusters work: `selftest.t [--no-real]`, TAP on stdout
#
# First the control plane with nodes that kwok plays, then a real node; what this machine cannot do is
# reported as skipped with the reason. Exit status: 0 nothing failed, 1 something did, 77 all skipped.

set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
count=0 failed=0

dir=$(mktemp -d "${TMPDIR:-/tmp}/gpuq-kube-selftest.XXXXXX") || exit 1
cleanup() {
	"$here/cluster" stop "$dir/c" || say "stopping the cluster failed"
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# ok "what" command...
ok() {
	what=$1
	shift
	count=$((count + 1))
	if "$@" >"$dir/out" 2>&1; then
		echo "ok $count - $what"
	else
		failed=$((failed + 1))
		echo "not ok $count - $what"
		sed 's/^/# /' "$dir/out"
	fi
}

skipped() {
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $(tail -n 1 "$dir/out")"
}

kube() {
	"$here/kube" "$@"
}

cluster() {
	command=$1
	shift
	"$here/cluster" "$command" "$dir/c" "$@"
}

# is PATH EXPR VALUE
is() {
	got=$(kube get "$1" "$2") || return 1
	[ "$got" = "$3" ] || { echo "$1: $2 is '$got', not '$3'"; return 1; }
}

not() {
	! "$@"
}

# pod NAME NODE GPUS [KEY=VALUE annotation]... with the container's other fields in $container
container='"image": "docker.io/local/busybox:1"'
pod() {
	pod_name=$1 pod_node=$2 pod_gpus=$3
	shift 3
	notes=
	for note in "$@"; do
		notes="$notes${notes:+, }\"${note%%=*}\": \"${note#*=}\""
	done
	kube create default/pods - <<-EOF
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$pod_name", "annotations": {$notes}},
		 "spec": {"nodeName": "$pod_node", "restartPolicy": "Never", "terminationGracePeriodSeconds": 20,
		  "containers": [{"name": "main", "imagePullPolicy": "Never", $container,
		   "resources": {"limits": {"nvidia.com/gpu": "$pod_gpus"${memory:+, \"memory\": \"$memory\"}}}}]}}
	EOF
}
memory=

with_kwok() {
	[ -n "${KUBEBUILDER_ASSETS:-}" ] || ok "the apiserver is $(kube_version)" is /version gitVersion "$(kube_version)"
	ok "three nodes with 8 GPUs" is nodes/node3 'status.allocatable.[nvidia.com/gpu]' 8
	ok "the checker of over-commitment starts" cluster watch
	pod fine node1 8 gpuq.io/devices=0,1,2,3,4,5,6,7 >/dev/null
	ok "a pod runs" kube wait default/pods/fine status.phase=Running
	ok "and succeeds" kube wait default/pods/fine status.phase=Succeeded
	ok "with exit code 0" is default/pods/fine status.containerStatuses.0.state.terminated.exitCode 0
	pod fails node1 8 gpuq.test/exit-code=3 gpuq.test/run=0s >/dev/null
	ok "a pod fails" kube wait default/pods/fails status.phase=Failed
	ok "with exit code 3" is default/pods/fails status.containerStatuses.0.state.terminated.exitCode 3
	pod oom node1 1 gpuq.test/oom=true gpuq.test/run=0s >/dev/null
	ok "a pod runs out of memory" kube wait default/pods/oom \
		status.containerStatuses.0.state.terminated.reason=OOMKilled
	pod refused node1 1 gpuq.test/reject=true >/dev/null
	ok "a pod is refused" kube wait default/pods/refused \
		status.phase=Failed,status.reason=UnexpectedAdmissionError,status.containerStatuses=
	pod hangs node1 1 gpuq.test/hang=true gpuq.test/slow-exit=1s >/dev/null
	ok "a pod hangs" kube wait default/pods/hangs status.phase=Running
	kube delete default/pods/hangs
	ok "and takes its time when deleted" is default/pods/hangs status.phase Running
	ok "then goes" kube wait default/pods/hangs gone

	ok "a node rejects" cluster reject node2
	pod there node2 2 >/dev/null
	ok "what arrives on it" kube wait default/pods/there status.reason=UnexpectedAdmissionError
	ok "and no more" cluster unreject node2
	pod stays node3 2 gpuq.test/run=1s >/dev/null
	ok "a node falls silent" cluster node-down node3
	ok "and turns Unknown" is nodes/node3 'status.conditions[type=Ready].status' Unknown
	sleep 2
	ok "its pod stays as it was" not is default/pods/stays status.phase Succeeded
	ok "the node comes back" cluster node-up node3
	ok "and its pod ends" kube wait default/pods/stays status.phase=Succeeded

	version=$(kube get default/pods metadata.resourceVersion)
	pod fresh node1 1 gpuq.test/hang=true >/dev/null
	kube wait default/pods/fresh status.phase=Running
	ok "the apiserver restarts" cluster restart-apiserver
	ok "and knows what was" is default/pods/fresh status.phase Running
	ok "the history is forgotten" cluster forget
	ok "and an old watch gets 410" gone_version "$version"
	last=$(kube get default/pods metadata.resourceVersion)
	ok "the history is forgotten again" cluster forget
	ok "and the newest watch of before gets 410" gone_version "$last"
	ok "and the pod still runs" is default/pods/fresh status.phase Running
	ok "nothing was over-committed" cluster unwatch
	ok "the checker sees two devices given twice" over_commit

	mkdir "$dir/m"
	manifests >"$dir/m/gpuqd.yaml"
	ok "a service account's kubeconfig" cluster gpuqd-kubeconfig "$dir/m"
	ok "may what its role says" kube --kubeconfig "$dir/c/gpuqd.kubeconfig" get nodes
	ok "and no more" not kube --kubeconfig "$dir/c/gpuqd.kubeconfig" get default/secrets
}

gone_version() {
	kube raw GET "default/pods?watch=1&timeoutSeconds=5&resourceVersion=$1" | grep '"code":410'
}

over_commit() {
	cluster watch || return 1
	pod over node1 8 gpuq.io/devices=0,1 gpuq.test/hang=true
	pod twice node1 1 gpuq.io/devices=1 gpuq.test/hang=true
	cluster unwatch >"$dir/verdict"
	[ $? = 1 ] && grep -q "device 1 belongs to default/over, default/twice" "$dir/verdict" &&
		grep -q "nvidia.com/gpu: 10 asked" "$dir/verdict"
}

manifests() {
	cat <<-EOF
		apiVersion: rbac.authorization.k8s.io/v1
		kind: ClusterRoleBinding
		metadata: {name: gpuqd}
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gpuqd}
		subjects: [{kind: ServiceAccount, name: gpuqd, namespace: gpuq-system}]
		---
		apiVersion: rbac.authorization.k8s.io/v1
		kind: ClusterRole
		metadata: {name: gpuqd}
		rules: [{apiGroups: [""], resources: [nodes], verbs: [get, list, watch]}]
		---
		apiVersion: v1
		kind: ServiceAccount
		metadata: {name: gpuqd, namespace: gpuq-system}
		---
		apiVersion: v1
		kind: Namespace
		metadata: {name: gpuq-system}
	EOF
}

shell() {
	container="\"image\": \"docker.io/local/busybox:1\", \"command\": [\"/bin/sh\", \"-c\", \"$1\"]"
}

log_is() {
	got=$(kube logs "default/$1") || return 1
	[ "$got" = "$2" ] || { echo "the log is '$got', not '$2'"; return 1; }
}

# Three devices of the four, each once.
sees_three_gpus() {
	kube logs "default/$1" | grep -Ex 'gpu-[0-3],gpu-[0-3],gpu-[0-3]' | tr , '\n' | sort -u | grep -c gpu |
		grep -x 3
}

with_real_node() {
	ok "a real node with 4 GPUs" is nodes/real1 'status.allocatable.[nvidia.com/gpu]' 4
	shell 'echo $NVIDIA_VISIBLE_DEVICES; exit 7'
	pod three real1 3 >/dev/null
	ok "a container fails" kube wait default/pods/three status.phase=Failed --timeout 60
	ok "with exit code 7" is default/pods/three status.containerStatuses.0.state.terminated.exitCode 7
	ok "and saw three GPUs" sees_three_gpus three

	shell "trap 'echo leaving; exit 0' TERM; echo waiting; while :; do sleep 0.1; done"
	pod first real1 3 >/dev/null
	ok "a container runs" kube wait default/pods/first status.phase=Running --timeout 60
	pod second real1 3 >/dev/null
	ok "the kubelet refuses what has no GPUs" kube wait default/pods/second \
		status.phase=Failed,status.reason=UnexpectedAdmissionError
	ok "the log is there" wait_for 60 log log_is first waiting
	kube delete default/pods/first
	ok "it leaves with grace" kube wait default/pods/first gone --timeout 60

	memory=32Mi
	shell 'exec tail /dev/zero'
	pod greedy real1 0 >/dev/null
	ok "a container runs out of memory" kube wait default/pods/greedy \
		status.containerStatuses.0.state.terminated.reason=OOMKilled --timeout 60
	memory=
	echo 0 1 >"$dir/c/real/unhealthy"
	ok "two GPUs fall ill" kube wait nodes/real1 'status.allocatable.[nvidia.com/gpu]=2' --timeout 60
	rm "$dir/c/real/unhealthy"
	ok "and recover" kube wait nodes/real1 'status.allocatable.[nvidia.com/gpu]=4' --timeout 60
	ok "the kubelet stops" cluster stop-server kubelet
	ok "and starts again" cluster start-server kubelet
	shell 'echo again'
	pod again real1 4 >/dev/null
	ok "with all its GPUs" kube wait default/pods/again status.phase=Succeeded --timeout 90
}

# What must not differ before and after: it is the machine's, not ours.
machine_state() {
	sysctl -n vm.overcommit_memory kernel.panic kernel.panic_on_oops
	iptables-save 2>/dev/null | grep -v '^#'
	ip -o link | cut -d: -f2
	# Other tests beside this one may mount something in folders of their own.
	cut -d' ' -f5 /proc/self/mountinfo |
		awk -v own="$dir" 'index($0, own) == 1 || !/^\/tmp\/gpuq-t\./'
	find /sys/fs/cgroup -name 'gpuq-test*' -o -name kubepods
	ls -d /var/lib/kubelet /var/lib/cni /var/log/pods 2>/dev/null
}

start_with() {
	"$here/cluster" start "$dir/c" "$@" >"$dir/out" 2>&1
	status=$?
	export KUBECONFIG="$dir/c/admin.kubeconfig"
	[ $status -ne 0 ] || return 0
	if [ $status = 77 ]; then
		skipped "a cluster with $*"
	else
		ok "a cluster with $*" not cat "$dir/out"
	fi
	return $status
}

"$here/build" || { [ $? = 77 ] && echo "1..0 # SKIP Kubernetes cannot be built here" && exit 77; exit 1; }
ran=0
if start_with --nodes 3 --gpus 8; then
	ran=1
	with_kwok
	ok "it stops" cluster stop
fi
rm -rf "$dir/c"
if [ "${1-}" != --no-real ]; then
	machine_state >"$dir/before"
	if start_with --no-kwok --real-node; then
		ran=1
		with_real_node
		ok "it stops" cluster stop
		machine_state >"$dir/after"
		ok "and leaves the machine as it was" diff "$dir/before" "$dir/after"
	fi
fi
echo "1..$count"
[ $failed = 0 ] || exit 1
[ $ran = 1 ] || exit 77
