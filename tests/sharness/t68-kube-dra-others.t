#!/bin/sh
test_description='real control plane: devices of claims that others allocate, extended resources of classes, flavors by class'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/dra.sh"

# The test is the driver of the nodes that kwok plays, and the allocator of others: it writes what kube-scheduler would.
cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/dra.yaml" --nodes 2 --gpus 0

# slice NODE N PRODUCT: gpu-0 to gpu-(N-1)
slice() {
	/usr/bin/python3 -c '
import json, sys
node, n, product = sys.argv[1:]
def text(s): return {"string": s}
devices = [{"name": f"gpu-{i}", "attributes": {"type": text("gpu"), "productName": text(product)}, "capacity": {"memory": {"value": "40Gi"}}}
           for i in range(int(n))]
print(json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}, "spec": {"driver": "gpu.nvidia.com",
    "nodeName": node, "devices": devices, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}))' "$@" | kube apply -f - >/dev/null
}

# allocated NAME DEVICES [admin] [RESOURCE]: a claim of others, of these devices of node1, for the pod NAME of others, in the order of
# kube-scheduler: claim, pod, allocation, binding. RESOURCE: the pod requests one of that name instead, which the claim serves.
allocated() {
	/usr/bin/python3 - "$1" "$2" "${3-}" "${4-}" "$kube_image" <<-\END &&
	import json, sys
	name, devices, admin, resource, image = sys.argv[1:]
	devices, more = devices.split(), {"adminAccess": True} if admin else {}
	exactly = dict(deviceClassName="gpu.nvidia.com", count=len(devices), allocationMode="ExactCount", **more)
	notes = {"resource.kubernetes.io/extended-resource-claim": "true"} if resource else {}
	claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
	         "metadata": {"name": name, "annotations": notes, "finalizers": ["resource.kubernetes.io/delete-protection"]}}
	main = {"name": "main", "image": image, "resources": {"limits": {resource: "1"} if resource else {}}}
	spec = {"schedulerName": "others", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main]}
	if not resource:
	    spec["resourceClaims"] = [{"name": "g", "resourceClaimName": name}]
	pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": {"gpuq.test/hang": "true"}}, "spec": spec}
	results = [dict(request="r", driver="gpu.nvidia.com", pool="node1", device=d, **more) for d in devices]
	term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node1"]}]}
	status = {"allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}},
	          "reservedFor": [{"resource": "pods", "name": name, "uid": "UID"}]}
	mapping = {"containerName": "main", "resourceName": resource, "requestName": "r"}
	bind = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": "node1"}}
	for what, obj in (("claim", claim), ("pod", pod), ("status", {"status": status}), ("bind", bind),
	                  ("served", {"status": {"extendedResourceClaimStatus": {"resourceClaimName": name, "requestMappings": [mapping]}}})):
	    open(what + ".json", "w").write(json.dumps(obj))
	END
		kube create others/resourceclaims claim.json >/dev/null && kube create others/pods pod.json >/dev/null &&
		kube patch "others/resourceclaims/$1/status" "$(sed "s/UID/$(kube get "others/pods/$1" metadata.uid)/" status.json)" >/dev/null &&
		{ [ -z "${4-}" ] || kube patch "others/pods/$1/status" "$(cat served.json)" >/dev/null; } &&
		kube create "others/pods/$1/binding" bind.json >/dev/null
}

given_back() {
	kube delete "others/pods/$1" --grace 0 >/dev/null && kube delete "others/resourceclaims/$1" >/dev/null
}

# device NODE INDEX: its state as gpuqd has it
device() {
	gpuq nodes --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    n = json.loads(line)
    if n["name"] == sys.argv[1]: print(n["devices"][int(sys.argv[2])]["state"])' "$@"
}

device_is() {
	device_got=$(device "$1" "$2")
	[ "$device_got" = "$3" ] || { echo "device $2 of $1 is $device_got, not $3"; return 1; }
}

# results_of CLAIM: its devices, sorted
results_of() {
	kube get "gpuq-jobs/resourceclaims/$1" | /usr/bin/python3 -c '
import json, sys
c = json.load(sys.stdin).get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
print(*sorted(r["pool"] + "/" + r["device"] for r in c))'
}

nvidia="device.driver == 'gpu.nvidia.com'"

test_expect_success 'the devices of a claim of others are taken, in nodes and for jobs' '
	kube create namespaces - >/dev/null <<-END &&
	{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "others", "labels": {"resource.kubernetes.io/admin-access": "true"}}}
	END
	class gpu.nvidia.com "$nvidia" "extendedResourceName: nvidia.com/gpu" && slice node1 4 "NVIDIA A100" && slice node2 2 "NVIDIA H100" && start_kube_gpuqd && wait_for 60 node_frees node1 4 &&
	allocated two "gpu-0 gpu-2" && wait_for 60 node_frees node1 2 && device_is node1 0 foreign && device_is node1 1 free && device_is node1 2 foreign &&
	id=$(fake_job "claims: [{name: g, class: gpu.nvidia.com, count: 2}]\nnodes: [node1]\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 &&
	test "$(results_of "$(pods_of "$id")-g")" = "node1/gpu-1 node1/gpu-3" && device_is node1 1 allocated && device_is node1 0 foreign && node_frees node1 0 &&
	gpuq cancel "$id" && given_back two && wait_for 60 node_frees node1 4 && wait_for 60 no_claims
'

test_expect_success 'beside a claim of others, the end of a job lets one with another number of devices start' '
	allocated two "gpu-0 gpu-2" && wait_for 60 node_frees node1 2 &&
	id=$(fake_job "claims: [{name: g, class: gpu.nvidia.com, count: 2}]\nnodes: [node1]\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 &&
	next=$(fake_job "claims: [{name: g, class: gpu.nvidia.com}]\nnodes: [node1]\n$(fate hang=true)") && wait_for 60 job_is "$next" reasons.0.code Resources &&
	job_is "$next" reasons.0.object gpus && gpuq why "$next" >out && grep "after this job has ended: $id" out &&
	gpuq cancel "$id" && job_becomes "$next" RUNNING 120 && gpuq cancel "$next" && given_back two && wait_for 60 node_frees node1 4 && wait_for 60 no_claims
'

test_expect_success 'a pod of others that requests an extended resource is counted by its claim, once' '
	allocated ext "gpu-3" "" nvidia.com/gpu && wait_for 60 node_frees node1 3 && wait_for 60 device_is node1 3 foreign && sleep 1 && node_frees node1 3 &&
	{ gpuq doctor >out || :; } && grep -q "DeviceClass gpu.nvidia.com has extendedResourceName nvidia.com/gpu, which is not served" out &&
	given_back ext && wait_for 60 node_frees node1 4
'

test_expect_success 'a job that requests an extended resource of a class is told by which claims, and starts nowhere' '
	id=$(fake_job "gpus: 1" 2>err) && grep "DeviceClass gpu.nvidia.com, which are allocated by claims" err && wait_for 60 job_is "$id" state PENDING && sleep 2 && n_pods "$id" 0 && gpuq cancel "$id" &&
	id=$(fake_job "resources: {deviceclass.resource.kubernetes.io/gpu.nvidia.com: 1}" 2>err) && grep "DeviceClass gpu.nvidia.com, which are allocated by claims" err && gpuq cancel "$id" &&
	id=$(fake_job "resources: {example.com/nic: 1}" 2>err) && test_must_fail grep DeviceClass err && gpuq cancel "$id"
'

test_expect_success 'access of administrators takes nothing from others' '
	allocated watcher "gpu-0 gpu-1 gpu-2 gpu-3" admin && allocated one "gpu-1" && wait_for 60 node_frees node1 3 && device_is node1 0 free && device_is node1 1 foreign &&
	id=$(fake_job "claims: [{name: g, class: gpu.nvidia.com, count: 3}]\nnodes: [node1]\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 &&
	test "$(results_of "$(pods_of "$id")-g")" = "node1/gpu-0 node1/gpu-2 node1/gpu-3" && gpuq cancel "$id" && given_back one && given_back watcher && wait_for 60 node_frees node1 4 && wait_for 60 no_claims
'

test_expect_success 'all devices of a node: for jobs that have the node to themselves' '
	all="claims: [{name: g, class: gpu.nvidia.com, all: true}]" && printf "image: $kube_image\ncommand: [sleep]\n$all\n" >all.yaml &&
	test_must_fail gpuq submit all.yaml 2>err && grep "exclusive: true" err &&
	id=$(fake_job "exclusive: true\nnodes: [node2]\n$all\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && test "$(results_of "$(pods_of "$id")-g")" = "node2/gpu-0 node2/gpu-1" &&
	node_frees node2 0 && job_is "$id" gpus 2 && gpuq cancel "$id" && wait_for 60 no_claims && wait_for 60 node_frees node2 2
'

# counts_are STATE N...: of all devices
counts_are() {
	gpuq status --json | /usr/bin/python3 -c '
import json, sys
devices, states = json.load(sys.stdin)["devices"], sys.argv[1:]
sys.exit(any(devices[s] != int(n) for s, n in zip(states[::2], states[1::2])) and str(devices))' "$@"
}

test_expect_success 'a device with a taint is lost, but for a claim that tolerates it; then it is allocated' '
	/usr/bin/python3 -c "
import json
devices = [dict(name=\"gpu-0\", attributes={\"type\": {\"string\": \"gpu\"}}, taints=[dict(key=\"ill\", value=\"xid\", effect=\"NoSchedule\")]), dict(name=\"gpu-1\", attributes={\"type\": {\"string\": \"gpu\"}})]
print(json.dumps(dict(apiVersion=\"resource.k8s.io/v1\", kind=\"ResourceSlice\", metadata=dict(name=\"node2\"), spec=dict(driver=\"gpu.nvidia.com\",
    nodeName=\"node2\", devices=devices, pool=dict(name=\"node2\", generation=2, resourceSliceCount=1)))))" | kube apply -f - >/dev/null && wait_for 60 node_frees node2 1 && counts_are allocated 0 lost 1 &&
	kube create gpuq-jobs/resourceclaimtemplates - >/dev/null <<-END &&
	{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "bears"}, "spec": {"spec": {"devices": {"requests": [{"name": "r",
	 "exactly": {"deviceClassName": "gpu.nvidia.com", "tolerations": [{"key": "ill", "operator": "Exists", "effect": "NoSchedule"}]}}]}}}}
	END
	plain=$(fake_job "claims: [{name: g, class: gpu.nvidia.com}]\nnodes: [node2]\n$(fate hang=true)") && job_becomes "$plain" RUNNING 120 &&
	more=$(fake_job "claims: [{name: g, class: gpu.nvidia.com}]\nnodes: [node2]\n$(fate hang=true)") && wait_for 60 job_is "$more" state PENDING &&
	bears=$(fake_job "claims: [{name: g, template: bears}]\nnodes: [node2]\n$(fate hang=true)") && job_becomes "$bears" RUNNING 120 && job_is "$more" state PENDING &&
	counts_are allocated 2 lost 0 && gpuq cancel "$plain" "$more" "$bears" && wait_for 60 no_claims && slice node2 2 "NVIDIA H100" && wait_for 60 node_frees node2 2
'

flavor_of() {
	gpuq nodes --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    n = json.loads(line)
    if n["name"] == sys.argv[1]: print(n["flavor"])' "$1"
}

has_flavor() {
	test "$(flavor_of "$1")" = "$2"
}

# limited JOB: it waits for the limit of its queue
limited() {
	job_is "$1" state PENDING && job_is "$1" reason LimitQueue
}

test_expect_success 'flavors by device_class and product: the quota and the limit of each hold for claims' '
	cat >site.yaml <<-END &&
	version: 1
	flavors:
	- {name: h100, device_class: gpu.nvidia.com, match: {product: "*H100*"}}
	- {name: a100, device_class: gpu.nvidia.com, match: {product: "*A100*"}}
	queues: [{name: default, quota: {h100: 1, a100: 4}, limit: {h100: 1, a100: 4}}]
	END
	gpuq apply -f site.yaml && wait_for 60 has_flavor node2 h100 && has_flavor node1 a100 &&
	one=$(fake_job "flavor: h100\nclaims: [{name: g, class: gpu.nvidia.com}]\n$(fate hang=true)") && job_becomes "$one" RUNNING 120 && job_is "$one" flavor h100 && results_of "$(pods_of "$one")-g" | grep "^node2/" &&
	two=$(fake_job "flavor: h100\nclaims: [{name: g, class: gpu.nvidia.com}]\n$(fate hang=true)") && wait_for 60 limited "$two" && node_frees node2 1 &&
	three=$(fake_job "flavor: a100\nclaims: [{name: g, class: gpu.nvidia.com, count: 4}]\n$(fate hang=true)") && job_becomes "$three" RUNNING 120 && job_is "$three" gpus 4 && results_of "$(pods_of "$three")-g" | grep "^node1/gpu-0 node1/gpu-1 node1/gpu-2 node1/gpu-3$" &&
	gpuq cancel "$one" && job_becomes "$two" RUNNING 120 && gpuq cancel "$two" "$three" && wait_for 60 no_claims
'

beta=/apis/resource.k8s.io/v1beta2

# The apiserver serves v1beta2 alone, as one of Kubernetes 1.33 does by a switch; what it stored before it has still. Its
# authorizer of nodes wants v1.
test_expect_success 'a server with v1beta2 alone: devices are known, claims are made, allocated and given back' '
	stop_gpuqd && cluster stop-apiserver && echo "--runtime-config=resource.k8s.io/v1=false,resource.k8s.io/v1beta2=true" >>"$TMPDIR/k/apiserver.flags" &&
	echo "--authorization-mode=RBAC" >>"$TMPDIR/k/apiserver.flags" && cluster start-apiserver &&
	test_must_fail kube list resourceslices metadata.name && test "$(kube list $beta/resourceslices metadata.name | grep -c node)" = 2 &&
	start_kube_gpuqd && wait_for 60 node_frees node1 4 &&
	id=$(fake_job "flavor: a100\nclaims: [{name: g, class: gpu.nvidia.com, count: 3}]\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && node_frees node1 1 &&
	test "$(kube list $beta/namespaces/gpuq-jobs/resourceclaims status.allocation.devices.results.2.device)" = gpu-2 &&
	test "$(kube list $beta/namespaces/gpuq-jobs/resourceclaims status.reservedFor.0.name)" = "$(pods_of "$id")" &&
	{ gpuq doctor >out || :; } && grep -q "claims of devices are allocated (resource.k8s.io/v1beta2)" out &&
	gpuq cancel "$id" && wait_for 60 node_frees node1 4
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
