# provision.sh - what the whole-system tests of requested nodes share; sourced after kube.sh
#
# tests/kube/fake-autoscaler plays the cloud, as scaler/next says; what it saw is in scaler/log and seen.

group=/apis/autoscaling.x-k8s.io/v1

# crd VERSION: the kind, served in that version alone
crd() {
	sed "s/@VERSION@/$1/" "$kube_tools/provisioning-crd.yaml" >crd.yaml && kube apply -f crd.yaml &&
		kube wait /apis/apiextensions.k8s.io/v1/customresourcedefinitions/provisioningrequests.autoscaling.x-k8s.io \
			'status.conditions[type=Established].status=True' --timeout 60
}

# autoscaler VERSION
autoscaler() {
	mkdir -p scaler
	KUBECONFIG="$TMPDIR/k/admin.kubeconfig" "$kube_tools/fake-autoscaler" "$1" scaler >scaler.out 2>&1 3>&- 4>&- 5>&- &
	autoscaler_pid=$!
	wait_for 30 grep -q ^serving scaler.out
}

# becomes WORD [POOL=WORD]...: what becomes of requests from now on; then_becomes WORD: of those that there are
becomes() {
	echo "$*" >scaler/next
}
then_becomes() {
	echo "$1" >scaler/then.new && mv scaler/then.new scaler/then && wait_for 30 test ! -e scaler/then
}

# requests [EXPR]: those that there are
requests() {
	kube list "$group/provisioningrequests" "${1:-metadata.name}"
}

templates() {
	kube list gpuq-jobs/podtemplates metadata.name
}

# no_requests: and no templates either
no_requests() {
	test -z "$(requests)" && test -z "$(templates)"
}

# n_seen N: as many requests were ever made
n_seen() {
	n_seen_got=$(sort -u scaler/seen | wc -l)
	[ "$n_seen_got" = "$1" ] || { echo "$n_seen_got requests, not $1"; cat scaler/seen; return 1; }
}

# none_twice: no request was ever made a second time
none_twice() {
	sort scaler/seen | uniq -d >twice.out && test ! -s twice.out || { cat twice.out; return 1; }
}

# n_of JOB N: as many requests were ever made for it
n_of() {
	n_of_got=$(grep -c -e "-$1-ask" scaler/seen)
	[ "$n_of_got" = "$2" ] || { echo "$n_of_got requests for job $1, not $2"; cat scaler/log; return 1; }
}

no_nodes() {
	test -z "$(kube list nodes metadata.name)"
}

# pool NAME FLAVOR GPUS [MAX_NODES [KEYS [LABEL]]]: one that grows, as YAML; LABEL: one more of its nodes
pool() {
	echo "- {name: $1, flavor: $2, selector: {cloud.google.com/gke-nodepool: $1}, provisioning: {kind: request," \
		"class: queued-provisioning.gke.io, max_nodes: ${4-1}, retry_base: 1s, retry_max: 4s," \
		"machine: {gpus: $3, cpus: 8, memory: 64Gi, labels: {cloud.google.com/gke-nodepool: $1${6:+, $6}}}" \
		"${5:+, $5}}}"
}

site() {
	{
		printf "version: 1\nflavors: [{name: t4}, {name: a100}, {name: big}, {name: few}, {name: hasty}, {name: odd}, {name: spare}]\nqueues: [{name: dws}]\npools:\n"
		cat
	} >site.yaml
}

# grow LINES [option...]: a job for the pool big, that runs until it is told to end; grow_on FLAVORS LINES
grow() {
	grow_lines=$1
	shift
	grow_on big "$grow_lines" "$@"
}
grow_on() {
	grow_flavors=$1 grow_lines=$2
	shift 2
	fake_job "queue: dws\nflavor: $grow_flavors\n$grow_lines\n$(fate hang=true)" "$@"
}

# ends JOB: it is cancelled, and nothing of its request stays
ends() {
	gpuq cancel "$1" && wait_for 60 no_requests && wait_for 60 no_nodes && none_twice
}

# other_clocks: the daemon that shimmed starts sees other clocks, CLOCK_SHIM seconds ahead: they are set while it is
# away, as if it were away for so long. The machine's own stay.
other_clocks() {
	CLOCK_SHIM=$PWD/clock
	clock_shim=$test_build/tests/sharness/.libs/clock_shim.so
	[ -r "$clock_shim" ] || { echo "$clock_shim: not there; make check builds it" >&2; exit 99; }
	ASAN_OPTIONS=verify_asan_link_order=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
	CLOCK_SHIM_BOOT=1
	export CLOCK_SHIM CLOCK_SHIM_BOOT ASAN_OPTIONS
}
clock_to() {
	echo "$1" >clock.new && mv clock.new clock
}
shimmed() {
	(
		LD_PRELOAD=$clock_shim
		export LD_PRELOAD
		exec gpuqd --state "$PWD/state" --listen "$GPUQ_SERVER" --cluster kube --kubeconfig "$TMPDIR/k/gpuqd.kubeconfig" \
			--namespace gpuq-jobs --config "$PWD/gpuqd.yaml" "$@" </dev/null >>gpuqd.log 2>&1 3>&- 4>&- 5>&-
	) &
	gpuqd_pid=$!
	wait_gpuqd && wait_for 60 cluster_is_fresh
}
