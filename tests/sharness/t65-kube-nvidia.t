#!/bin/sh
test_description='real control plane: NVIDIA'\''s plugin: whole devices, replicas under time-slicing and MPS, MIG of both strategies'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/plugins.sh"

cluster_for_gpuqd --nodes 2 --gpus 4

begin() {
	daemon
}

daemon() {
	start_kube_gpuqd
}

# ---- the matrix row MIG mixed: the same tests as t0505-fake-mig.t ----

first=node1 pods=/namespaces/gpuq-jobs/pods
. "$test_source/tests/sharness/instances.sh"

# on NODE 'KEYS': a job there until it is cancelled, which starts when the kubelet has admitted it
on() {
	part "$2\nnode_selector: {kind: $1}"
}

# pod NODE 'LIMITS': a manifest of such a pod
pod() {
	cat <<-END
	{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {gpuq.test/start: 3600s, gpuq.test/hang: "true"}},
	 spec: {nodeSelector: {kind: $1}, containers: [{name: c, image: $kube_image, command: [a], resources: {limits: {$2}}}]}}
	END
}

# no_refusals: the kubelets refused nothing
no_refusals() {
	! grep refused ./*.log
}

test_expect_success 'the matrix row NVIDIA whole: the node fills up, no pod is refused, and the next waits' '
	cluster node w gpus=4 label=kind=w && wait_for 60 node_frees w 4 && plugin nvidia w && for n in 1 2 1; do on w "gpus: $n" || return 1; done >ids &&
	for id in $(cat ids); do job_becomes "$id" RUNNING 120 && job_is "$id" attempt 0 || return 1; done && next=$(on w "gpus: 1") && wait_for 60 job_is "$next" reason Resources &&
	test "$(limits "$id")" = "{\"nvidia.com/gpu\": \"1\"}" && gpuq cancel "$id" && job_becomes "$next" RUNNING 120 && no_refusals && gpuq cancel "$next" $(head -n 2 ids)
'

test_expect_success 'the matrix row NVIDIA whole: what another took while gpuqd saw nothing is waited for' '
	wait_for 60 node_frees w 4 && cluster node w2 gpus=4 label=kind=short label=other=yes && wait_for 60 node_frees w2 4 && plugin nvidia w2 &&
	kill -STOP $gpuqd_pid && foreign_pod race w2 4 gpuq.test/start=3600s gpuq.test/hang=true >/dev/null && wait_for 60 grep "served race" w2.log && kill -CONT $gpuqd_pid &&
	wait_for 60 node_frees w2 0 && id=$(on short "gpus: 2") && wait_for 60 job_is "$id" reason Resources && kube delete default/pods/race --grace 0 && job_becomes "$id" RUNNING 120 && gpuq cancel "$id"
'

test_expect_success 'AC-NV-2: the matrix row time-slicing: eighty replicas are eight devices, one is a tenth of one; two to one pod are refused' '
	cluster node ts gpus=0 nvidia.com/gpu=80 label=kind=ts label=nvidia.com/gpu.count=8 label=nvidia.com/gpu.replicas=10 label=nvidia.com/gpu.sharing-strategy=time-slicing \
		label=nvidia.com/gpu.product=NVIDIA-H100-SHARED label=nvidia.com/gpu.memory=81920 && wait_for 60 node_frees ts 8 && plugin nvidia ts one=yes && node_has ts sharing time-slicing &&
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do on ts "gpus: 0.1" || return 1; done >ids && for id in $(cat ids); do job_becomes "$id" RUNNING 120 && job_is "$id" gpus 0.1 || return 1; done &&
	wait_for 60 node_frees ts 6.8 && test "$(limits "$id")" = "{\"nvidia.com/gpu\": \"1\"}" && big=$(on ts "gpus: 0.2") && wait_for 60 job_is "$big" reason Unsatisfiable &&
	whole=$(on ts "gpus: 1") && wait_for 60 job_is "$whole" reason Unsatisfiable && pod ts "nvidia.com/gpu.shared: 2" >two.yaml && exits 1 gpuq submit two.yaml &&
	grep "several replicas may be the same device" err && no_refusals && gpuq cancel "$big" "$whole" $(cat ids) && wait_for 60 node_frees ts 8
'

test_expect_success 'the matrix row MPS: renamed replicas are had by their name, a quarter each, until all are taken' '
	cluster node mps gpus=0 nvidia.com/gpu.shared=8 label=kind=mps label=nvidia.com/gpu.count=2 label=nvidia.com/gpu.replicas=4 label=nvidia.com/gpu.sharing-strategy=mps \
		label=nvidia.com/gpu.product=NVIDIA-A100 label=nvidia.com/mps.capable=true label=nvidia.com/gpu.memory=40960 && wait_for 60 node_frees mps 2 && plugin nvidia mps one=yes &&
	pod mps "nvidia.com/gpu.shared: 1" >one.yaml && for i in 1 2 3 4; do submit one.yaml && on mps "gpus: 0.25" || return 1; done >ids &&
	for id in $(cat ids); do job_becomes "$id" RUNNING 120 && test "$(limits "$id")" = "{\"nvidia.com/gpu.shared\": \"1\"}" || return 1; done && job_is "$id" isolation mps && job_is "$id" gpus 0.25 &&
	next=$(submit one.yaml) && wait_for 60 job_is "$next" reason Resources && no_refusals && gpuq cancel "$next" $(cat ids) && wait_for 60 node_frees mps 2
'

test_expect_success 'AC-NV-1: the matrix row MIG single: fifty-six slots are instances of seven a card, and no whole device' '
	cluster node ms gpus=0 nvidia.com/gpu=56 label=kind=ms label=nvidia.com/gpu.count=56 label=nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb label=nvidia.com/mig.strategy=single \
		label=nvidia.com/gpu.memory=5120 && wait_for 60 node_has ms mig.0.count 56 && node_has ms mig.0.profile 1g.5gb && node_has ms gpus 8 && plugin nvidia ms &&
	for i in 1 2 3 4 5 6 7 8; do on ms "mig: 1g.5gb" || return 1; done >ids && for id in $(cat ids); do job_becomes "$id" RUNNING 120 && job_is "$id" pods.0.node ms && job_is "$id" gpus 0.143 || return 1; done &&
	test "$(limits "$id")" = "{\"nvidia.com/gpu\": \"1\"}" && wait_for 60 node_has ms mig.0.free 48 && job_is "$id" isolation mig && whole=$(on ms "gpus: 8") && wait_for 60 job_is "$whole" reason Unsatisfiable && no_refusals &&
	gpuq cancel "$whole" $(cat ids) && wait_for 60 node_has ms mig.0.free 56
'

test_expect_success 'the matrix row MIG mixed: instances of two profiles beside whole devices, each counted by its name' '
	cluster node mm gpus=2 nvidia.com/mig-1g.5gb=14 nvidia.com/mig-3g.20gb=4 label=kind=mm label=nvidia.com/mig.strategy=mixed && wait_for 60 node_has mm mig.1.count 4 && plugin nvidia mm &&
	for ask in "mig: 1g.5gb" "mig: 3g.20gb" "gpus: 2"; do on mm "$ask" || return 1; done >ids && for id in $(cat ids); do job_becomes "$id" RUNNING 120 || return 1; done &&
	for i in 1 2 3; do on mm "mig: 3g.20gb" || return 1; done >more && for id in $(cat more); do job_becomes "$id" RUNNING 120 || return 1; done && last=$(on mm "mig: 3g.20gb") &&
	wait_for 60 job_is "$last" reason Resources && wait_for 60 node_has mm mig.0.free 13 && no_refusals && gpuq cancel "$last" $(cat ids more)
'

test_expect_success 'AC-NV-3: an amount of memory, MIG accepted: the smallest instance that holds it, never two of a smaller one, nor a whole device' '
	wait_for 60 node_has mm mig.1.free 4 && for i in 1 2 3 4; do on mm "gpu_memory: 18Gi\nmig_ok: true" || return 1; done >ids &&
	for id in $(cat ids); do job_becomes "$id" RUNNING 120 && test "$(limits "$id")" = "{\"nvidia.com/mig-3g.20gb\": \"1\"}" && job_is "$id" gpus 0.429 && job_is "$id" isolation mig || return 1; done &&
	more=$(on mm "gpu_memory: 18Gi\nmig_ok: true") && wait_for 60 job_is "$more" reason Resources && node_has mm mig.0.free 14 && gpuq cancel "$(head -n 1 ids)" &&
	job_becomes "$more" RUNNING 120 && small=$(on mm "gpu_memory: 4Gi\nmig_ok: true") && job_becomes "$small" RUNNING 120 && test "$(limits "$small")" = "{\"nvidia.com/mig-1g.5gb\": \"1\"}" &&
	no_refusals && gpuq cancel "$more" "$small" $(sed 1d ids)
'

test_expect_success 'AC-NV-7: what nodes do not report is in the inventory of the site; the smaller number counts, and doctor tells' '
	cluster node bare gpus=0 nvidia.com/gpu=40 label=kind=bare && wait_for 60 node_frees bare 40 && cat >inventory.yaml <<-\END && gpuq apply -f inventory.yaml &&
	version: 1
	inventory:
	- {selector: {kind: bare}, product: NVIDIA-T4, memory: 16Gi, cards: 6, replicas: 8}
	END
	wait_for 60 node_has bare devices.0.product NVIDIA-T4 && node_has bare gpus 5 && { gpuq doctor >doctor.out || true; } && grep "bare.*cards 6, of the node 5" doctor.out &&
	id=$(on bare "gpus: 0.1") && wait_for 60 eval "test \"\$(limits $id)\" = \"{\\\"nvidia.com/gpu\\\": \\\"1\\\"}\"" && gpuq cancel "$id"
'

test_expect_success 'AC-NV-6: a pod without devices on a node that has some sees none' '
	id=$(fake_job "cpus: 100m\nnode_selector: {kind: w}\n$(fate hang=true start=100ms)") && wait_for 60 the_pod "$id" && kube raw GET "$(the_pod "$id")" 2>/dev/null >pod.out &&
	grep "\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"void\"" pod.out && gpuq cancel "$id"
'

test_expect_success 'no kubelet refused a pod, nothing was over-committed' 'no_refusals && stop_gpuqd && end_plugins && nothing_was_overcommitted'

test_done
