#!/bin/sh
test_description='real control plane: MIG instances that claims have, each charged its part of the card'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/dra.sh"
. "$test_source/tests/sharness/plugins.sh"

# The test is the driver of the cards of nodes that kwok plays; nothing prepares them.
cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/dra.yaml" --nodes 2 --gpus 0

# static NODE PROFILES...: card 0 is whole, card 1 is cut into these instances, as the driver lists a card of mode MIG
static() {
	/usr/bin/python3 -c '
import json, sys
node, profiles = sys.argv[1], sys.argv[2:]
def text(s): return {"string": s}
def device(name, memory, **words): return {"name": name, "attributes": {k: text(v) for k, v in words.items()}, "capacity": {"memory": {"value": memory}}}
product = {"productName": "NVIDIA H100 80GB HBM3"}
devices = [device("gpu-0", "80Gi", type="gpu", uuid=f"GPU-{node}-0", **product)]
for i, p in enumerate(profiles):
    devices.append(device(f"gpu-1-mig-{i}", p.split(".")[1].replace("gb", "Gi"), type="mig", uuid=f"MIG-{node}-{i}", parentUUID=f"GPU-{node}-1", profile=p, **product))
print(json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}, "spec": {"driver": "gpu.nvidia.com", "nodeName": node,
    "devices": devices, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}))' "$@" | kube apply -f - >/dev/null
}

# dynamic NODE CARDS: whole cards, and the instances that they could be cut into, by counters
dynamic() {
	/usr/bin/python3 -c '
import json, sys
node, cards = sys.argv[1], int(sys.argv[2])
def text(s): return {"string": s}
def counters(slices, memory): return {"compute": {"value": str(slices)}, **{f"memory-slice-{i}": {"value": "1"} for i in memory}}
def device(name, card, slices, memory, **words):
    return {"name": name, "attributes": {k: text(v) for k, v in words.items()}, "capacity": {"memory": {"value": f"{10 * len(memory)}Gi"}},
            "consumesCounters": [{"counterSet": f"gpu-{card}", "counters": counters(slices, memory)}]}
def slice(name, more):
    print("---")
    print(json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": dict(
        driver="gpu.nvidia.com", nodeName=node, pool={"name": node, "generation": 1, "resourceSliceCount": 2}, **more)}))
devices = []
for c in range(cards):
    one = {"productName": "NVIDIA H100 80GB HBM3"}
    devices.append(device(f"gpu-{c}", c, 7, range(8), type="gpu", uuid=f"GPU-{node}-{c}", **one))
    mig = dict(one, type="mig", parentUUID=f"GPU-{node}-{c}")
    devices += [device(f"gpu-{c}-mig-1g-{i}", c, 1, [i], profile="1g.10gb", **mig) for i in range(7)]
    devices += [device(f"gpu-{c}-mig-3g-{i}", c, 3, range(i, i + 4), profile="3g.40gb", **mig) for i in (0, 4)]
slice(node + "-counters", {"sharedCounters": [{"name": f"gpu-{c}", "counters": counters(7, range(8))} for c in range(cards)]})
slice(node, {"devices": devices})' "$@" | kube apply -f - >/dev/null
}

# instance PROFILE NODE [LINES]: a job of one, until it is cancelled
instance() {
	fake_job "claims: [{name: m, class: mig.nvidia.com, selectors: [\"device.attributes['gpu.nvidia.com'].profile == '$1'\"]}]\nnode_selector: {kubernetes.io/hostname: $2}\n${3+$3\\n}$(fate hang=true)"
}

card() { # NODE
	fake_job "claims: [{name: g, class: gpu.nvidia.com}]\nnode_selector: {kubernetes.io/hostname: $1}\n$(fate hang=true)"
}

# results_of JOB: the devices of its claims, sorted
results_of() {
	for results_pod in $(pods_of "$1"); do
		for results_claim in m g; do
			kube get "gpuq-jobs/resourceclaims/$results_pod-$results_claim" 2>/dev/null | /usr/bin/python3 -c '
import json, sys
text = sys.stdin.read()
print(*sorted(r["device"] for r in json.loads(text)["status"]["allocation"]["devices"]["results"])) if text else None'
		done
	done
}

# devices_say STATE NUMBER: of gpuq status
devices_say() {
	devices_got=$(gpuq status --json | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["devices"][sys.argv[1]])' "$1")
	[ "$devices_got" = "$2" ] || { echo "$1: $devices_got, not $2"; return 1; }
}

# node_row NODE COLUMNS TEXT
node_row() {
	row_got=$(gpuq nodes -h -o "$2" | grep "^$1 " | tr -s ' ' | sed 's/ $//')
	[ "$row_got" = "$3" ] || { echo "$row_got, not"; echo "$3"; return 1; }
}

no_jobs() {
	[ "$(in_queue)" = 0 ] && [ "$(kube list gpuq-jobs/resourceclaims metadata.name | grep -c .)" = 0 ]
}

all_cancelled() {
	gpuq cancel "$@" && wait_for 120 no_jobs
}

test_expect_success 'a card that is cut shows once, with its instances, which are a seventh each in GPUS, quota and the sums' '
	class gpu.nvidia.com "device.driver == '\''gpu.nvidia.com'\'' && device.attributes['\''gpu.nvidia.com'\''].type == '\''gpu'\''" &&
	class mig.nvidia.com "device.driver == '\''gpu.nvidia.com'\'' && device.attributes['\''gpu.nvidia.com'\''].type == '\''mig'\''" &&
	static node1 1g.10gb 1g.10gb 2g.20gb 3g.40gb && start_kube_gpuqd && wait_for 60 node_has node1 gpus 2 && node_has node1 devices.1.uuid GPU-node1-1 && node_has node1 devices.1.memory_mib 81920 &&
	one=$(instance 1g.10gb node1) && two=$(instance 1g.10gb node1) && three=$(instance 3g.40gb node1) && whole=$(card node1) &&
	for id in $one $two $three $whole; do job_becomes "$id" RUNNING 60 || return 1; done && test "$(results_of "$three")" = gpu-1-mig-3 && test "$(results_of "$whole")" = gpu-0 &&
	job_is "$one" gpus 0.142 && job_is "$three" gpus 0.428 && job_is "$one" isolation mig && job_is "$whole" isolation exclusive && job_is "$whole" gpus 1 && job_is "$whole" cpus null &&
	wait_for 60 node_has node1 free_gpus 0.288 && devices_say allocated 1.712 && devices_say free 0.288 && job_is "$one" pods.0.devices.0.index 1 &&
	gpuq nodes --json && node_row node1 NODE,GPU,MIG,FREE "$(printf "node1 0 1g.10gb 0/2,2g.20gb 1/1,3g.40gb 0/1 0\nnode1 1 1g.10gb 0/2,2g.20gb 1/1,3g.40gb 0/1 0.288")" &&
	gpuq nodes -h -o NODE,GPU,BY | grep "^node1 *1 .*$three/.*(0.428)" && more=$(instance 1g.10gb node1) && wait_for 60 job_is "$more" reason Resources &&
	again=$(card node1) && wait_for 60 job_is "$again" reason Resources && gpuq cancel "$one" && job_becomes "$more" RUNNING 60 && all_cancelled "$two" "$three" "$whole" "$more" "$again"
'

test_expect_success 'the quota of a queue has seven instances in a card' '
	cat >site.yaml <<-END && gpuq apply -f site.yaml && ids= &&
	version: 1
	queues: [{name: lab, limit: 1, namespace: gpuq-jobs}]
	END
	dynamic node2 2 && wait_for 60 node_has node2 gpus 2 &&
	for i in 1 2 3 4 5 6 7; do ids="$ids $(instance 1g.10gb node2 "queue: lab")" || return 1; done && for id in $ids; do job_becomes "$id" RUNNING 60 || return 1; done &&
	more=$(instance 1g.10gb node2 "queue: lab") && wait_for 60 job_is "$more" reason LimitQueue && job_is "$more" state PENDING && all_cancelled $ids "$more"
'

test_expect_success 'a whole card and its instances exclude one another, and the parts that are in use are shown' '
	whole=$(card node2) && job_becomes "$whole" RUNNING 60 && test "$(results_of "$whole")" = gpu-0 &&
	a=$(instance 3g.40gb node2) && b=$(instance 3g.40gb node2) && job_becomes "$a" RUNNING 60 && job_becomes "$b" RUNNING 60 && test "$(results_of "$a")$(results_of "$b")" = gpu-1-mig-3g-0gpu-1-mig-3g-4 &&
	wait_for 60 node_has node2 free_gpus 0.144 && node_row node2 NODE,GPU,MIG,DEVICE_STATE "$(printf "node2 0 3g.40gb 0/2 allocated\nnode2 1 3g.40gb 0/2 shared")" &&
	c=$(instance 1g.10gb node2) && next=$(card node2) && wait_for 60 job_is "$c" reason Resources && wait_for 60 job_is "$next" reason Resources &&
	gpuq cancel "$whole" && wait_for 120 node_has node2 free_gpus 0.144 && all_cancelled "$a" "$b" "$c" "$next"
'

test_expect_success 'several instances of a pod are of one card; more than a card are charged a card each' '
	a=$(instance 1g.10gb node2) && job_becomes "$a" RUNNING 60 && pair="claims: [{name: m, class: mig.nvidia.com, count: 2, selectors: [\"device.attributes['\''gpu.nvidia.com'\''].profile == '\''3g.40gb'\''\"]}]\nnode_selector: {kubernetes.io/hostname: node2}" &&
	b=$(fake_job "$pair\n$(fate hang=true)") && job_becomes "$b" RUNNING 60 && job_is "$b" gpus 0.856 && test "$(results_of "$b")" = "gpu-1-mig-3g-0 gpu-1-mig-3g-4" && wait_for 60 job_is "$b" pods.0.devices.0.index 1 &&
	c=$(fake_job "$pair\n$(fate hang=true)") && wait_for 60 job_is "$c" reason Resources && all_cancelled "$a" "$b" "$c"
'

# The claim of the instance comes late: what it was placed on is not to be given away until then.
test_expect_success 'a whole card leaves the one that an instance was placed on, and is not charged for it' '
	kube apply -n gpuq-jobs -f - >/dev/null <<-END &&
	apiVersion: resource.k8s.io/v1
	kind: ResourceClaimTemplate
	metadata: {name: three}
	spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: mig.nvidia.com, selectors: [{cel: {expression: "device.attributes['\''gpu.nvidia.com'\''].profile == '\''3g.40gb'\''"}}]}}]}}}
	END
	cluster pause kube-controller-manager && part=$(fake_job "claims: [{name: m, template: three}]\nnode_selector: {kubernetes.io/hostname: node2}\n$(fate hang=true)") &&
	wait_for 60 n_pods "$part" 1 && job_is "$part" gpus 0.428 && whole=$(card node2) && job_becomes "$whole" RUNNING 60 && cluster resume kube-controller-manager &&
	job_becomes "$part" RUNNING 60 && test "$(results_of "$whole")" = gpu-1 && job_is "$whole" pods.0.devices.0.index 1 && job_is "$part" pods.0.devices.0.index 0 &&
	wait_for 60 node_has node2 free_gpus 0.572 && all_cancelled "$part" "$whole"
'

test_expect_success 'alternatives of instances and whole cards; a demand for isolation mig is met' '
	x="{class: mig.nvidia.com, selectors: [\"device.attributes['\''gpu.nvidia.com'\''].profile == '\''2g.20gb'\''\"]}" &&
	a=$(fake_job "isolation: mig\nclaims: [{name: m, first: [$x, {class: gpu.nvidia.com}]}]\nnode_selector: {kubernetes.io/hostname: node1}\n$(fate hang=true)") && job_becomes "$a" RUNNING 60 && job_is "$a" gpus 0.285 && job_is "$a" isolation mig &&
	b=$(fake_job "isolation: mig\nclaims: [{name: m, first: [$x, {class: gpu.nvidia.com}]}]\nnode_selector: {kubernetes.io/hostname: node1}\n$(fate hang=true)") && job_becomes "$b" RUNNING 60 && job_is "$b" gpus 1 && job_is "$b" isolation exclusive &&
	test_must_fail instance 1g.10gb node1 "isolation: exclusive" 2>err && grep "a MIG instance has at most mig" err && all_cancelled "$a" "$b"
'

test_expect_success 'after a restart they are charged the same; a job of instances that came before any node had some' '
	a=$(instance 3g.40gb node2) && job_becomes "$a" RUNNING 60 && kube delete resourceslices/node1 >/dev/null && wait_for 60 node_has node1 gpus 0 &&
	late=$(instance 4g.40gb node1) && job_is "$late" gpus 1 && stop_gpuqd && start_kube_gpuqd && wait_for 60 node_has node2 free_gpus 1.572 && job_is "$a" gpus 0.428 &&
	static node1 4g.40gb && job_becomes "$late" RUNNING 60 && job_is "$late" gpus 0.571 && all_cancelled "$a" "$late"
'

test_expect_success 'instances that pods of others have are counted as such' '
	kube apply -n gpuq-jobs -f - >/dev/null <<-END &&
	apiVersion: resource.k8s.io/v1
	kind: ResourceClaim
	metadata: {name: theirs}
	spec: {devices: {requests: [{name: r, exactly: {deviceClassName: mig.nvidia.com, allocationMode: ExactCount, count: 1}}]}}
	END
	kube patch gpuq-jobs/resourceclaims/theirs/status '\''{"status": {"allocation": {"devices": {"results": [{"request": "r", "driver": "gpu.nvidia.com", "pool": "node2", "device": "gpu-0-mig-3g-0"}]}}}}'\'' >/dev/null && wait_for 60 node_has node2 free_gpus 1.572 && devices_say free 3.572 &&
	a=$(instance 3g.40gb node2) && b=$(card node2) && job_becomes "$a" RUNNING 60 && job_becomes "$b" RUNNING 60 && test "$(results_of "$b")" = gpu-1 && test "$(results_of "$a")" = gpu-0-mig-3g-4 && gpuq cancel "$a" "$b"
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
