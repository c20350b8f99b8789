#!/bin/sh
test_description='real control plane: nodes that a MIG manager cuts into instances, as gpuqd decides'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/mig.sh"

cluster_for_gpuqd

instance() { # PROFILE [KEYS]
	fake_job "mig: $1\n$(fate hang=true)${2+\n$2}" 2>>warned
}

label_is() { # NODE LAYOUT
	label_got=$(kube get "nodes/$1" | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["metadata"].get("labels", {}).get("nvidia.com/mig.config", "-"))')
	[ "$label_got" = "$2" ] || { echo "the label of $1 is $label_got, not $2"; return 1; }
}

has_failed() { # NODE WORDS
	gpuq nodes -o NODE,NOTE >nodes.out && grep "$1 .*failed: .*$2" nodes.out
}

none_is_cut() { # no label of a node is being set
	gpuq nodes --json >nodes.out && ! grep -E "\"mig_layout\":[^}]*\"state\":\"(set|back)\"" nodes.out
}

site() { # AGAIN
	echo "{version: 1, pools: [{name: m, mig: {manager: true, layouts: [all-1g.10gb, all-3g.40gb], timeout: 5m, again: $1}}]}" >site.yaml
	gpuq apply -f site.yaml
}

test_expect_success 'without the right nothing is cut: the node and doctor name what is missing' '
	cluster node m1 gpus=2 && cluster node m2 gpus=2 && manager "$TMPDIR/k/admin.kubeconfig" && start_kube_gpuqd && wait_for 60 node_frees m1 2 && wait_for 60 node_frees m2 2 &&
	site 1s &&
	j=$(instance 1g.10gb) && wait_for 60 eval "has_failed m1 optional/mig.yaml" && label_is m1 - && ! grep -q ^set manager.log &&
	{ gpuq doctor >doctor.out || true; } && grep -i "mig: manager" doctor.out && gpuq cancel "$j" && wait_for 60 none_is_cut
'

test_expect_success 'AC-NV-4: the matrix row MIG mixed: with the right twelve jobs run on a node that was cut for them, the other has a pod and stays' '
	kube apply -f "$test_source/etc/kubernetes/optional/mig.yaml" >/dev/null && kill -HUP "$gpuqd_pid" &&
	busy=$(fake_job "gpus: 1\nnodes: [m1]\n$(fate hang=true)") && job_becomes "$busy" RUNNING 120 &&
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do instance 1g.10gb || return 1; done >ids &&
	for id in $(cat ids); do job_becomes "$id" RUNNING 120 && job_is "$id" pods.0.node m2 || return 1; done && offers m2 1g.10gb 14 &&
	cut_is m2 state done && label_is m2 all-1g.10gb && label_is m1 - && kube get "$(the_pod "$id")" | grep "nvidia.com/mig-1g.10gb"
'

test_expect_success 'AC-NV-4: a failure: the label is as before, the job waits, and says so' '
	does "all-3g.40gb fail" && site 1h && gpuq cancel $(cat ids) && j=$(instance 3g.40gb) && wait_for 120 has_failed m2 "MIG manager failed" && wait_for 60 label_is m2 all-1g.10gb &&
	job_is "$j" state PENDING && gpuq cancel "$j"
'

test_expect_success 'a pod of others with a device keeps its node from being cut' '
	does obey && site 0s && gpuq cancel "$busy" && wait_for 60 node_frees m1 2 && foreign_pod theirs m1 1 gpuq.test/hang=true >/dev/null && wait_for 60 node_frees m1 1 &&
	j=$(instance 3g.40gb) && job_becomes "$j" RUNNING 120 && job_is "$j" pods.0.node m2 && label_is m1 - && gpuq cancel "$j"
'

test_expect_success 'no node with a pod was ever cut, nothing was over-committed' '
	! grep busy manager.log && stop_gpuqd && nothing_was_overcommitted
'

test_done
