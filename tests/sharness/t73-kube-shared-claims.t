#!/bin/sh
test_description='real control plane: pods that share one ResourceClaim have one card, which is counted and charged once'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/dra.sh"

# The test is the driver of the nodes that kwok plays; nothing prepares the devices.
cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/dra.yaml" --nodes 2 --gpus 0

# slice NODE N: gpu-0 to gpu-(N-1)
slice() {
	/usr/bin/python3 -c '
import json, sys
node, n = sys.argv[1:]
devices = [{"name": f"gpu-{i}", "attributes": {"type": {"string": "gpu"}, "productName": {"string": "NVIDIA A100"}}} for i in range(int(n))]
print(json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}, "spec": {"driver": "gpu.nvidia.com",
    "nodeName": node, "devices": devices, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}))' "$@" | kube apply -f - >/dev/null
}

# named NAME: a claim of one device that somebody made
named() {
	kube apply -n gpuq-jobs -f - >/dev/null <<-END
	apiVersion: resource.k8s.io/v1
	kind: ResourceClaim
	metadata: {name: $1}
	spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: ExactCount, count: 1}}]}}
	END
}

# mine [KEY: VALUE]: a job with the claim `mine`
mine() {
	fake_job "claims: [{name: a, claim: mine}]\n${1:+$1\n}$(fate hang=true)"
}

# consumers N: so many pods have the claim
consumers() {
	test "$(kube get gpuq-jobs/resourceclaims/mine | /usr/bin/python3 -c 'import json, sys; print(len(json.load(sys.stdin).get("status", {}).get("reservedFor", [])))')" = "$1"
}

# tenants NODE DEVICE: the jobs on it
tenants() {
	gpuq nodes --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    n = json.loads(line)
    if n["name"] == sys.argv[1]: print(*n["devices"][int(sys.argv[2])]["jobs"])' "$@"
}

# shared_with JOB: "DEVICES JOBS CHARGED" of the claim that its pods share
shared_with() {
	gpuq status --json "$1" | /usr/bin/python3 -c '
import json, sys
for p in json.load(sys.stdin)["pods"]:
    for c in p["shared_claims"]: print(*c["devices"], *c["jobs"], c["charged"])'
}

# allocated N: so many devices are allocated in all
allocated() {
	allocated_got=$(gpuq status --json | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["devices"]["allocated"])')
	[ "$allocated_got" = "$1" ] || { echo "$allocated_got devices are allocated, not $1"; return 1; }
}

# fair_share N: that of the queue
fair_share() {
	fair_got=$(gpuq queues --json default | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["fair_share"])')
	[ "$fair_got" = "$1" ] || { echo "the fair share is $fair_got, not $1"; return 1; }
}

test_expect_success 'two jobs with one claim have one card; the other card is free, and a job of it runs' '
	class gpu.nvidia.com "device.driver == \x27gpu.nvidia.com\x27" && slice node1 2 && named mine && start_kube_gpuqd && wait_for 60 node_frees node1 2 &&
	one=$(mine) && job_becomes "$one" RUNNING 120 && job_is "$one" isolation exclusive &&
	two=$(mine) && job_becomes "$two" RUNNING 120 && wait_for 60 consumers 2 &&
	job_is "$one" gpus 1 && job_is "$two" gpus 0 && node_frees node1 1 && allocated 1 &&
	wait_for 60 fair_share 1 && test "$(tenants node1 0)" = "$one $two" && test -z "$(tenants node1 1)" &&
	test "$(shared_with "$one")" = "0 $two True" && test "$(shared_with "$two")" = "0 $one False" &&
	job_is "$one" isolation none && job_is "$two" isolation none && gpuq status "$two" >out && grep "gpu 0 of claim mine shared with $one, not charged" out &&
	three=$(fake_job "claims: [{name: a, class: gpu.nvidia.com}]\n$(fate hang=true)") && job_becomes "$three" RUNNING 120 && job_is "$three" isolation exclusive &&
	node_frees node1 0 && allocated 2 && test "$(tenants node1 1)" = "$three"
'

test_expect_success 'no card is free, and a further job with the claim runs; the sums are the same after kill -9' '
	more=$(mine) && job_becomes "$more" RUNNING 120 && allocated 2 && kill_gpuqd && start_kube_gpuqd && wait_for 60 allocated 2 &&
	job_is "$one" gpus 1 && job_is "$two" gpus 0 && job_is "$more" gpus 0 && test "$(tenants node1 0)" = "$one $two $more" && node_frees node1 0
'

test_expect_success 'the charge passes on to the oldest that is left, and the card is given back with the last' '
	gpuq cancel "$one" && wait_for 120 job_is "$two" gpus 1 && job_is "$more" gpus 0 && allocated 2 && wait_for 60 consumers 2 &&
	gpuq cancel "$two" && wait_for 120 job_is "$more" gpus 1 && wait_for 120 job_is "$more" isolation exclusive && allocated 2 && test "$(tenants node1 0)" = "$more" &&
	gpuq cancel "$more" "$three" && wait_for 120 node_frees node1 2 && wait_for 120 consumers 0 && allocated 0
'

test_expect_success 'the pods of one job share its claim: one card, also where more pods than cards are' '
	id=$(mine "pods: 3") && job_becomes "$id" RUNNING 120 && n_pods "$id" 3 && wait_for 60 consumers 3 && job_is "$id" gpus 1 && node_frees node1 1 && allocated 1 &&
	job_is "$id" isolation none && test "$(tenants node1 0)" = "$id $id $id" && gpuq cancel "$id" && wait_for 120 node_frees node1 2 && wait_for 120 consumers 0
'

# by_another: the claim is that of a pod of others on node1
by_another() {
	/usr/bin/python3 - "$kube_image" <<-\END &&
	import json, sys
	spec = {"schedulerName": "others", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
	        "containers": [{"name": "main", "image": sys.argv[1]}], "resourceClaims": [{"name": "g", "resourceClaimName": "mine"}]}
	term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node1"]}]}
	status = {"allocation": {"devices": {"results": [dict(request="r", driver="gpu.nvidia.com", pool="node1", device="gpu-1")]},
	                         "nodeSelector": {"nodeSelectorTerms": [term]}}, "reservedFor": [{"resource": "pods", "name": "other", "uid": "UID"}]}
	for what, obj in (("pod", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "annotations": {"gpuq.test/hang": "true"}}, "spec": spec}),
	                  ("final", {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}), ("status", {"status": status}),
	                  ("bind", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "other"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "node1"}})):
	    open(what + ".json", "w").write(json.dumps(obj))
	END
		kube create gpuq-jobs/pods pod.json >/dev/null && kube patch gpuq-jobs/resourceclaims/mine "$(cat final.json)" >/dev/null &&
		kube patch gpuq-jobs/resourceclaims/mine/status "$(sed "s/UID/$(kube get gpuq-jobs/pods/other metadata.uid)/" status.json)" >/dev/null &&
		kube create gpuq-jobs/pods/other/binding bind.json >/dev/null
}

test_expect_success 'a claim of a pod of others: its card is theirs, until they leave it to a job' '
	by_another && wait_for 60 node_frees node1 1 && id=$(mine) && job_becomes "$id" RUNNING 120 && wait_for 60 consumers 2 &&
	job_is "$id" gpus 0 && job_is "$id" isolation none && node_frees node1 1 && allocated 1 && test "$(tenants node1 1)" = "$id" &&
	kube delete gpuq-jobs/pods/other --grace 0 >/dev/null && wait_for 120 job_is "$id" gpus 1 && job_is "$id" isolation exclusive && node_frees node1 1 && allocated 1 &&
	gpuq cancel "$id" && wait_for 120 node_frees node1 2
'

test_done
