#!/bin/sh
test_description='real control plane: of alternatives of claims the first that can be had, and what is charged for it'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/dra.sh"

# The test is the driver of the nodes that kwok plays, and the allocator of others.
cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/dra.yaml" --nodes 2 --gpus 0

# slice NODE N PRODUCT [N PRODUCT]: gpu-0, gpu-1, ...
slice() {
	/usr/bin/python3 -c '
import json, sys
node, products = sys.argv[1], [p for n, p in zip(sys.argv[2::2], sys.argv[3::2]) for i in range(int(n))]
def text(s): return {"string": s}
devices = [{"name": f"gpu-{i}", "attributes": {"type": text("gpu"), "productName": text(p)}, "capacity": {"memory": {"value": "40Gi"}}}
           for i, p in enumerate(products)]
print(json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}, "spec": {"driver": "gpu.nvidia.com",
    "nodeName": node, "devices": devices, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}))' "$@" | kube apply -f - >/dev/null
}

# made KIND NAME A B: with A h100 or else B a100
made() {
	case $1 in ResourceClaim) made_spec= made_end= ;; *) made_spec="spec: {" made_end="}" ;; esac
	kube apply -n gpuq-jobs -f - >/dev/null <<-END
	apiVersion: resource.k8s.io/v1
	kind: $1
	metadata: {name: $2}
	spec: {${made_spec}devices: {requests: [{name: r, firstAvailable: [
	  {name: large, deviceClassName: gpu.h100, count: $3}, {name: small, deviceClassName: gpu.a100, count: $4}]}]}$made_end}
	END
}

# held NAME DEVICES: a claim of others that has these devices of node2, for no pod: the controller manager would give it back with that
held() {
	/usr/bin/python3 - "$1" "$2" <<-\END &&
	import json, sys
	name, devices = sys.argv[1], sys.argv[2].split()
	claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "finalizers": ["resource.kubernetes.io/delete-protection"]},
	         "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.h100", "count": len(devices), "allocationMode": "ExactCount"}}]}}}
	term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node2"]}]}
	results = [dict(request="r", driver="gpu.nvidia.com", pool="node2", device=d) for d in devices]
	open("claim.json", "w").write(json.dumps(claim))
	open("status.json", "w").write(json.dumps({"status": {"allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}}}}))
	END
		kube create default/resourceclaims claim.json >/dev/null && kube patch "default/resourceclaims/$1/status" "$(cat status.json)" >/dev/null
}

given_back() {
	kube patch "default/resourceclaims/$1/status" '{"status": {"allocation": null}}' >/dev/null &&
		kube patch "default/resourceclaims/$1" '{"metadata": {"finalizers": null}}' >/dev/null && kube delete "default/resourceclaims/$1" >/dev/null
}

# results_of CLAIM: its requests and devices, sorted
results_of() {
	kube get "gpuq-jobs/resourceclaims/$1" | /usr/bin/python3 -c '
import json, sys
c = json.load(sys.stdin).get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
print(*sorted(r["request"] + ":" + r["pool"] + "/" + r["device"] for r in c))'
}

# has JOB RESULTS [CLAIM]: its pod has these devices, and the job is charged as many, in status, queue and nodes
has() {
	has_claim=${3-$(pods_of "$1")-a}
	has_got=$(results_of "$has_claim")
	[ "$has_got" = "$2" ] || { echo "$has_claim has $has_got, not $2"; return 1; }
	has_n=$(echo "$2" | wc -w)
	job_is "$1" gpus "$has_n" && test "$(gpuq queue -h -o GPUS -j "$1" | tr -d " ")" = "$has_n"
}

queue_has() {
	queue_got=$(gpuq queues --json | json allocated)
	[ "$queue_got" = "$1" ] || { echo "the queue has $queue_got GPUs, not $1"; return 1; }
}

no_jobs() {
	[ "$(in_queue)" = 0 ] || { gpuq queue; return 1; }
}

# ended JOB...: nothing of them is left
ended() {
	gpuq cancel "$@" && wait_for 120 no_jobs && wait_for 120 no_claims
}

first="claims: [{name: a, first: [{class: gpu.h100, count: 3}, {class: gpu.a100, count: 2}]}]"
hang=$(fate hang=true)

test_expect_success 'nodes: two A100, and H100 only later' '
	class gpu.h100 "device.attributes[\x27gpu.nvidia.com\x27].productName.contains(\x27H100\x27)" &&
	class gpu.a100 "device.attributes[\x27gpu.nvidia.com\x27].productName.contains(\x27A100\x27)" &&
	slice node1 2 "NVIDIA A100" && start_kube_gpuqd && wait_for 60 node_frees node1 2
'

test_expect_success 'AC-DRA-3: two are enough where the three of the first alternative are nowhere, and two are charged' '
	id=$(fake_job "$first\n$hang" 2>err) && test_must_fail grep "no node can hold" err && job_becomes "$id" RUNNING 120 &&
	has "$id" "a/alt2:node1/gpu-0 a/alt2:node1/gpu-1" && node_frees node1 0 && queue_has 2
'

test_expect_success 'the next waits for two, and starts with three when these are there first' '
	more=$(fake_job "$first\n$hang") && wait_for 60 job_is "$more" reason Resources && job_is "$more" reasons.0.have 0 && job_is "$more" reasons.0.need 2 &&
	slice node2 3 "NVIDIA H100" && job_becomes "$more" RUNNING 120 && has "$more" "a/alt1:node2/gpu-0 a/alt1:node2/gpu-1 a/alt1:node2/gpu-2" && queue_has 5
'

test_expect_success 'a restart changes neither' '
	stop_gpuqd && start_kube_gpuqd && job_is "$id" state RUNNING && job_is "$id" gpus 2 && job_is "$more" gpus 3 && queue_has 5 && node_frees node1 0 && node_frees node2 0 &&
	ended "$id" "$more"
'

test_expect_success 'in the order written, where both are free, whatever is fewer' '
	id=$(fake_job "$first\n$hang") && job_becomes "$id" RUNNING 120 && has "$id" "a/alt1:node2/gpu-0 a/alt1:node2/gpu-1 a/alt1:node2/gpu-2" && ended "$id" &&
	id=$(fake_job "claims: [{name: a, first: [{class: gpu.a100, count: 2}, {class: gpu.h100, count: 1}]}]\n$hang") && job_becomes "$id" RUNNING 120 &&
	has "$id" "a/alt1:node1/gpu-0 a/alt1:node1/gpu-1" && ended "$id"
'

test_expect_success 'a template, and a manifest as it is' '
	made ResourceClaimTemplate pair 3 2 && cat >pod.yaml <<-END &&
	apiVersion: v1
	kind: Pod
	metadata: {name: dra, annotations: {gpuq.test/hang: "true"}}
	spec:
	  containers: [{name: main, image: $kube_image, command: [sleep, "1"], resources: {claims: [{name: gpu}]}}]
	  resourceClaims: [{name: gpu, resourceClaimTemplateName: pair}]
	END
	sleep 1 && one=$(submit pod.yaml) && two=$(submit pod.yaml) && job_becomes "$one" RUNNING 120 && job_becomes "$two" RUNNING 120 &&
	job_is "$one" gpus 3 && job_is "$two" gpus 2 && queue_has 5 && node_frees node1 0 && node_frees node2 0 && ended "$one" "$two"
'

test_expect_success 'a claim that pods share: the pods that come later have the alternative that it got' '
	slice node2 2 "NVIDIA H100" && wait_for 60 node_frees node2 2 && made ResourceClaim shared 3 2 && sleep 1 &&
	id=$(fake_job "claims: [{name: a, claim: shared}]\n$hang") && job_becomes "$id" RUNNING 120 && has "$id" "r/small:node1/gpu-0 r/small:node1/gpu-1" shared &&
	slice node2 3 "NVIDIA H100" && gpuq cancel "$id" && wait_for 120 no_jobs && kube delete gpuq-jobs/resourceclaims/shared >/dev/null && wait_for 120 no_claims && wait_for 60 node_frees node2 3
'

test_expect_success 'taken by others after it was placed: decided anew, with the other alternative' '
	cluster pause kube-controller-manager && id=$(fake_job "claims: [{name: a, template: pair}]\n$hang") && wait_for 60 n_pods "$id" 1 && job_is "$id" gpus 3 &&
	held thief "gpu-1" && sleep 1 && cluster resume kube-controller-manager && job_becomes "$id" RUNNING 120 && job_is "$id" gpus 2 && node_frees node1 0 && node_frees node2 2 &&
	ended "$id" && given_back thief && wait_for 60 node_frees node2 3
'

test_expect_success 'what it was placed with it gets, and no more, though more has come by then' '
	slice node2 2 "NVIDIA H100" && wait_for 60 node_frees node2 2 && cluster pause kube-controller-manager && id=$(fake_job "claims: [{name: a, template: pair}]\n$hang") && wait_for 60 n_pods "$id" 1 &&
	slice node1 2 "NVIDIA A100" 3 "NVIDIA H100" && wait_for 60 node_frees node1 3 && cluster resume kube-controller-manager && job_becomes "$id" RUNNING 120 && job_is "$id" gpus 2 &&
	test "$(results_of "$(kube list gpuq-jobs/resourceclaims metadata.name)")" = "r/small:node1/gpu-0 r/small:node1/gpu-1" && node_frees node1 3 && ended "$id" &&
	slice node1 2 "NVIDIA A100" && slice node2 3 "NVIDIA H100" && wait_for 60 node_frees node1 2 && wait_for 60 node_frees node2 3
'

test_expect_success 'pods of a gang have alternatives of one number, not all the same one' '
	gang="pods: 2\nclaims: [{name: a, first: [{class: gpu.h100, count: 2}, {class: gpu.a100, count: 2}]}]" &&
	id=$(fake_job "$gang\n$hang") && job_becomes "$id" RUNNING 120 && node_frees node1 0 && node_frees node2 1 && job_is "$id" gpus 4 && ended "$id"
'

test_expect_success 'limits count the alternative that is taken; refused is what none fits into' '
	cat >site.yaml <<-END &&
	version: 1
	flavors:
	- {name: h100, device_class: gpu.h100, match: {product: "*H100*"}}
	- {name: a100, device_class: gpu.a100, match: {product: "*A100*"}}
	queues: [{name: default, max_gpus: 2}]
	END
	gpuq apply -f site.yaml && printf "image: $kube_image\ncommand: [sleep]\nclaims: [{name: a, first: [{class: gpu.h100, count: 3}, {class: gpu.a100, count: 4}]}]\n" >large.yaml &&
	test_must_fail gpuq submit large.yaml 2>err && grep "requests 3 GPUs.* allows 2" err &&
	id=$(fake_job "$first\n$hang") && job_becomes "$id" RUNNING 120 && has "$id" "a/alt2:node1/gpu-0 a/alt2:node1/gpu-1" && ended "$id"
'

test_expect_success 'of two flavors the order of the alternatives decides, before that of flavors' '
	sed -i "s/max_gpus: 2/max_gpus: 8, flavors: [a100, h100]/" site.yaml && gpuq apply -f site.yaml &&
	id=$(fake_job "$first\n$hang") && job_becomes "$id" RUNNING 120 && has "$id" "a/alt1:node2/gpu-0 a/alt1:node2/gpu-1 a/alt1:node2/gpu-2" && job_is "$id" flavor h100 && ended "$id"
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
