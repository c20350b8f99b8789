#!/bin/sh
test_description='real control plane: requests of all kinds for devices, drawn by chance, on nodes of every plugin; nothing is refused'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/plugins.sh"

n_jobs=${GPUQ_TEST_MIXED:-200}
seed=${GPUQ_TEST_SEED:-2}
echo "# seed $seed, $n_jobs jobs: GPUQ_TEST_SEED=$seed GPUQ_TEST_MIXED=$n_jobs"

cluster_for_gpuqd

mixed() {
	/usr/bin/python3 "$test_source/tests/sharness/mixed.py" "$@"
}

# offered NODE KIND [option of the plugin]... -- [option of the node]...: a node, with its kubelet and plugin
offered() {
	offered_node=$1 offered_kind=$2 offered_by=
	shift 2
	while [ "$1" != -- ]; do
		offered_by="$offered_by $1"
		shift
	done
	shift
	cluster node "$offered_node" "$@" && plugin "$offered_kind" "$offered_node" $offered_by
}

# nodes_offered: two or three of each system, named by it
nodes_offered() {
	for i in 1 2 3; do
		offered "g$i" gpu-manager devices=4 -- gpus=0 label=kind=gaia tencent.com/vcuda-core=400 tencent.com/vcuda-memory=252 || return 1
	done
	for i in 1 2; do
		offered "s$i" gpushare -- gpus=0 label=kind=gpushare aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4 &&
			offered "h$i" hami devices=2 size=15360 split=4 -- gpus=0 label=kind=hami nvidia.com/gpu=8 &&
			offered "w$i" nvidia -- gpus=8 label=kind=whole rdma/hca=3 &&
			offered "r$i" nvidia one=yes -- gpus=0 label=kind=replicas nvidia.com/gpu=40 label=nvidia.com/gpu.count=4 label=nvidia.com/gpu.replicas=10 \
				label=nvidia.com/gpu.sharing-strategy=time-slicing label=nvidia.com/gpu.product=NVIDIA-H100-SHARED label=nvidia.com/gpu.memory=81920 &&
			offered "m$i" nvidia -- gpus=0 label=kind=mig nvidia.com/mig-1g.5gb=14 nvidia.com/mig-3g.20gb=4 label=nvidia.com/mig.strategy=mixed rdma/hca=1 || return 1
	done
}

# no_refusals: no plugin refused a pod, or served one for another
no_refusals() {
	! grep -E "^(refused|failed|confused|over) " ./*.log
}

all_end() {
	test "$(gpuq queue -h | grep -c .)" = 0
}

# steady: all that could start has been served, twice in a row the same
steady() {
	gpuq queue -h -t STARTING >starting && ! grep -q . starting && gpuq nodes --json >nodes.json && sleep 1 &&
		gpuq nodes --json | cmp -s - nodes.json
}

# roomless: jobs for whose pods the plugin of gpu-manager has left no room, and that came back to the same node, wait until
# others end, which those that stay never do; they are cancelled. Fails if there is none.
roomless() {
	gpuq queue -h -t STARTING | awk '/Device(Turn|Room)/ { print $1 }' >roomless && [ -s roomless ] &&
		grep -q "has chosen its devices for other pods" gpuqd.log && gpuq cancel $(cat roomless)
}

test_expect_success 'nodes of gpushare, gpu-manager, HAMi, whole devices, replicas and instances, some with network cards' '
	kube apply -f "$test_source/etc/kubernetes/optional/hami.yaml" >/dev/null && start_kube_gpuqd &&
	echo "{version: 1, pools: [{name: h, selector: {kind: hami}, sharing: hami}]}" >site.yaml && gpuq apply -f site.yaml && nodes_offered &&
	wait_for 60 node_frees g3 4 && wait_for 60 node_frees w2 8 && wait_for 60 node_frees h2 2 && wait_for 60 node_frees r2 4
'

test_expect_success 'all of the jobs complete at their first attempt, no plugin refuses a pod' '
	mixed jobs "$seed" "$n_jobs" >jobs.yaml && gpuq submit --json jobs.yaml >submitted.json 2>warned && wait_for "$((120 + n_jobs))" all_end &&
	gpuq history --json --limit 2000 >history.json && mixed ended "$n_jobs" history.json gpuqd.log && no_refusals
'

test_expect_success 'pods that stay: what the ledger has of each device is what the watcher has counted' '
	mixed jobs "$seed-more" 120 hang >hang.yaml && gpuq submit --json hang.yaml >hang.json 2>warned && { wait_for 60 steady || { roomless && wait_for 60 steady; }; } && no_refusals && stop_gpuqd
'

test_expect_success 'nothing was over-committed at any event' '
	end_plugins && nothing_was_overcommitted && mixed ledger nodes.json "$TMPDIR/k/log/overcommit"
'

test_done
