# kube.sh - what the whole-system tests on a real control plane share; sourced after lib.sh
#
# Each test has a cluster of its own in $TMPDIR/k (tests/kube/cluster: kube-apiserver, controller manager,
# etcd, nodes that kwok plays), overcommit-watch runs from before gpuqd starts until the test's end, and
# gpuqd has the rights of etc/kubernetes/base and no others. What the cluster does by hand, `kube` and
# `cluster`, is done as its administrator.

kube_tools=$test_source/tests/kube
kube_image=docker.io/local/busybox:1

kube() {
	"$kube_tools/kube" --kubeconfig "$TMPDIR/k/admin.kubeconfig" "$@"
}

cluster() {
	cluster_command=$1
	shift
	"$kube_tools/cluster" "$cluster_command" "$TMPDIR/k" "$@"
}

# cluster_for_gpuqd [--with MANIFEST] [option of `cluster start`]...: before the first test. The cluster, the
# rights, the watcher; the end of this test where this machine cannot have it.
cluster_for_gpuqd() {
	more_rights=
	if [ "${1-}" = --with ]; then
		more_rights=$2
		shift 2
	fi
	test_cluster=$TMPDIR/k
	cluster start "$@" >cluster.out 2>&1 3>&- 4>&- 5>&- &&
		cluster gpuqd-kubeconfig "$test_source/etc/kubernetes/base" ${more_rights:+"$more_rights"} \
			>>cluster.out 2>&1 &&
		cluster watch >>cluster.out 2>&1 3>&- 4>&- 5>&- &&
		return
	cluster_status=$?
	trap - EXIT
	end_all
	if [ $cluster_status = 77 ]; then
		echo "1..0 # SKIP $(tail -n 1 cluster.out)"
	else
		cat cluster.out
	fi
	exit $cluster_status
}

# start_kube_gpuqd [option...]: it runs jobs in gpuq-jobs unless their queue says otherwise
start_kube_gpuqd() {
	start_gpuqd --cluster kube --kubeconfig "$TMPDIR/k/gpuqd.kubeconfig" --namespace gpuq-jobs "$@" &&
		wait_for 60 cluster_is_fresh
}

cluster_is_fresh() {
	gpuq status --json >status.out && [ "$(json cluster.stale_since <status.out)" = null ]
}

cluster_is_stale() {
	gpuq status --json >status.out && [ "$(json cluster.stale_since <status.out)" != null ]
}

# The last test of each file.
nothing_was_overcommitted() {
	cluster unwatch
}

# fake_job 'LINES' [option...]: submits a job file of these lines (\n between them) with an image and a
# command, prints the id. kwok reads its fate from annotations: tests/kube/stages.yaml.
fake_job() {
	fake_lines=$1
	shift
	printf "image: $kube_image\ncommand: [sleep, '1']\n$fake_lines\n" | submit "$@" -
}

# fate KEY=VALUE...: the line of the job file that tells kwok
fate() {
	fate_line=
	for fate_one; do
		fate_line="$fate_line${fate_line:+, }gpuq.test/${fate_one%%=*}: '${fate_one#*=}'"
	done
	echo "annotations: {$fate_line}"
}

# pods_of JOB [EXPR]: its pods in the cluster, a line each; names unless EXPR says otherwise
pods_of() {
	kube list "${pods_namespace:-gpuq-jobs}/pods?labelSelector=gpuq.io/job=$1" "${2:-metadata.name}"
}

# n_pods JOB N
n_pods() {
	n_pods_got=$(pods_of "$1" | grep -c .)
	[ "$n_pods_got" = "$2" ] || { echo "job $1 has $n_pods_got pods, not $2"; pods_of "$1"; return 1; }
}

# node_image NAME [option of make-image]...: an image that the real node has
node_image() {
	node_image_name=$1
	shift
	"$kube_tools/make-image" "$@" image.tar "$node_image_name" "$(command -v busybox)" &&
		nsenter -t "$(cut -d" " -f1 "$TMPDIR/k/run/node.pid")" -m -n -p ctr -a /run/gpuq-containerd.sock -n k8s.io \
			images import "$PWD/image.tar" >images.out 2>&1 && rm image.tar
}

# node_address: of the real node, where pods reach what listens in its network
node_address() {
	kube get nodes/real1 'status.addresses[type=InternalIP].address'
}

# in_node COMMAND...: in the network of the real node
in_node() {
	nsenter -t "$(cut -d" " -f1 "$TMPDIR/k/run/node.pid")" -n "$@"
}

# the_pod JOB: API path of its only pod
the_pod() {
	the_pod_name=$(pods_of "$1") && [ -n "$the_pod_name" ] && [ "$(echo "$the_pod_name" | wc -l)" = 1 ] &&
		echo "${pods_namespace:-gpuq-jobs}/pods/$the_pod_name"
}

# foreign_pod NAME NODE GPUS [KEY=VALUE annotation]...: made by somebody else, in the namespace default
foreign_pod() {
	foreign_name=$1 foreign_node=$2 foreign_gpus=$3
	shift 3
	foreign_notes=
	for foreign_note; do
		foreign_notes="$foreign_notes${foreign_notes:+, }\"${foreign_note%%=*}\": \"${foreign_note#*=}\""
	done
	kube create default/pods - <<-EOF
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$foreign_name", "annotations": {$foreign_notes}},
		 "spec": {"nodeName": "$foreign_node", "restartPolicy": "Never", "terminationGracePeriodSeconds": 5,
		  "containers": [{"name": "main", "image": "$kube_image", "imagePullPolicy": "Never",
		   "command": ["/bin/sh", "-c", "${foreign_command:-sleep 300}"],
		   "resources": {"limits": {"nvidia.com/gpu": "$foreign_gpus"}}}]}}
	EOF
}

# node_frees NODE N: its free devices, as gpuqd knows them
node_frees() {
	node_got=$(gpuq nodes --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    n = json.loads(line)
    if n["name"] == sys.argv[1]: print(n["free_gpus"])' "$1")
	[ "$node_got" = "$2" ] || { echo "$1 has ${node_got:-no} free devices, not $2"; return 1; }
}

# node_state NODE: as gpuqd has it
node_state() {
	gpuq nodes --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    n = json.loads(line)
    if n["name"] == sys.argv[1]: print(n["state"])' "$1"
}

# jobs_of ORIGIN [queue|history] [STATE]: ids of the jobs of KIND/NAME
jobs_of() {
	gpuq "${2:-queue}" --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    job = json.loads(line)
    o = job.get("origin") or {}
    if "%s/%s" % (o.get("kind"), o.get("name")) == sys.argv[1] and (len(sys.argv) < 3 or job["state"] == sys.argv[2]):
        print(job["id"])' "$1" ${3+"$3"}
}

# n_jobs N ORIGIN [queue|history] [STATE]
n_jobs() {
	n_jobs_want=$1
	shift
	test "$(jobs_of "$@" | grep -c .)" = "$n_jobs_want"
}

# fakenode COMMAND...: what a node that kwok plays is told to do
fakenode() {
	KUBECONFIG="$TMPDIR/k/admin.kubeconfig" "$kube_tools/fakenode" "$@"
}

no_claims() {
	[ -z "$(kube list gpuq-jobs/resourceclaims metadata.name)" ]
}

node_is() {
	node_got=$(node_state "$1")
	[ "$node_got" = "$2" ] || { echo "$1 is ${node_got:-not there}, not $2"; return 1; }
}

# bound_claim NAME [LABELS [DIR]]: a claim that is bound to a volume of every node, the directory; LABELS as JSON
bound_claim() {
	kube apply -f - <<-END >/dev/null &&
		apiVersion: v1
		kind: PersistentVolume
		metadata: {name: pv-$1}
		spec:
		  accessModes: [ReadWriteOnce]
		  capacity: {storage: 1Gi}
		  storageClassName: none
		  persistentVolumeReclaimPolicy: Retain
		  claimRef: {namespace: gpuq-jobs, name: $1}
		  hostPath: {path: "${3:-/nowhere}"}
		---
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1, namespace: gpuq-jobs, labels: ${2:-"{}"}}
		spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}
	END
		kube wait "gpuq-jobs/persistentvolumeclaims/$1" status.phase=Bound --timeout 60
}
