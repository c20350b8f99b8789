#!/bin/sh
test_description='real control plane: devices of ResourceSlices, and claims that gpuqd allocates'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/dra.sh"

# Slices are written by the test, as a driver on the nodes that kwok plays would; nothing prepares the devices.
cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/dra.yaml" --nodes 2 --gpus 0

# slice NAME NODE GENERATION SLICES FIRST N PRODUCT
slice() {
	/usr/bin/python3 -c '
import json, sys
name, node, generation, slices, first, n, product = sys.argv[1:]
def text(s): return {"string": s}
devices = [{"name": f"gpu-{i}", "attributes": {"type": text("gpu"), "uuid": text(f"GPU-{node}-{i}"), "productName": text(product)},
            "capacity": {"memory": {"value": "40Gi"}}} for i in range(int(first), int(first) + int(n))]
print(json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": {
    "driver": "gpu.nvidia.com", "nodeName": node, "devices": devices,
    "pool": {"name": node, "generation": int(generation), "resourceSliceCount": int(slices)}}}))' "$@" | kube apply -f - >/dev/null
}

# says_of JOB TEXT: the words of the cluster behind its reason
says_of() {
	says_got=$(job "$1" reasons.0.message)
	echo "$says_got" | grep -e "$2" || { echo "$says_got"; return 1; }
}

# claims_are N: so many claims there are
claims_are() {
	claims_got=$(kube list gpuq-jobs/resourceclaims metadata.name | grep -c .)
	[ "$claims_got" = "$1" ] || { echo "$claims_got claims, not $1"; kube list gpuq-jobs/resourceclaims; return 1; }
}

# results_of CLAIM: the requests and devices that it is allocated to, sorted
results_of() {
	kube get "gpuq-jobs/resourceclaims/$1" | /usr/bin/python3 -c '
import json, sys
c = json.load(sys.stdin).get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
print(" ".join(sorted(r["request"] + ":" + r["device"] for r in c)))'
}

gone() {
	wait_for 120 claims_are "$1"
}

no_jobs() {
	[ "$(in_queue)" = 0 ] || { gpuq queue; return 1; }
}

# afresh: nothing of an earlier step is there any more, however that ended
afresh() {
	cluster resume kube-controller-manager
	if gpuqd_is_dead; then
		unset GPUQ_FAILPOINT
		start_kube_gpuqd || return 1
	fi
	for afresh_job in $(gpuq queue -h -o JOBID); do
		gpuq cancel "$afresh_job" || :
	done
	wait_for 120 no_jobs || return 1
	for afresh_claim in $(kube list gpuq-jobs/resourceclaims metadata.name); do
		kube delete "gpuq-jobs/resourceclaims/$afresh_claim" >/dev/null || :
	done
	gone 0
}

n_devices() {
	test "$(gpuq nodes --json | /usr/bin/python3 -c '
import json, sys
print(sum(len(json.loads(l)["devices"]) for l in sys.stdin if json.loads(l)["name"] == sys.argv[1]))' "$1")" = "$2"
}

nvidia="device.driver == 'gpu.nvidia.com'"
a100="device.attributes['gpu.nvidia.com'].productName.contains('A100')"
h100="device.attributes['gpu.nvidia.com'].productName.contains('H100')"

test_expect_success 'AC-DRA-1: a pool has devices when all slices of its newest generation are there' '
	class gpu.nvidia.com "$nvidia" && slice old node1 2 1 0 8 "NVIDIA A100" && start_kube_gpuqd && wait_for 60 n_devices node1 8 &&
	slice new-1 node1 3 2 0 4 "NVIDIA A100" && wait_for 60 n_devices node1 0 &&
	{ gpuq doctor --json >found || :; } && grep '\''"backend":"dra"'\'' found | grep '\''"state":"broken"'\'' | grep "node1 (ResourceSlices of its pools are not complete)" &&
	id=$(fake_job "claims: [{name: g, class: gpu.nvidia.com}]\n$(fate hang=true)") && wait_for 60 job_is "$id" reason Unsatisfiable && claims_are 0 &&
	slice new-2 node1 3 2 4 4 "NVIDIA A100" && kube delete resourceslices/old >/dev/null && wait_for 60 n_devices node1 8 && job_becomes "$id" RUNNING 120 &&
	pod=$(pods_of "$id") && test "$(results_of "$pod-g")" = "g:gpu-0" && job_is "$id" gpus 1 && node_frees node1 7 &&
	gpuq cancel "$id" && gone 0 && node_frees node1 8
'

# warned CLAIM [TEXT]: what is said at submit of a job with it; without a text, nothing of nodes
warned() {
	printf "command: [a]\nimage: %s\nclaims: [{name: g, %s}]\n" "$kube_image" "$1" >w.yaml && gpuq submit --dry-run w.yaml >/dev/null 2>warned &&
		if [ $# = 2 ]; then says warned "no node can hold a pod of this job .$2.: it is pending until one can"; else ! grep "no node" warned; fi
}

test_expect_success 'claims that no node can hold are told at submit, with what the largest node has' '
	afresh && warned "class: gpu.nvidia.com, count: 9" "9 of class gpu.nvidia.com requested, 8 on the largest node" &&
	warned "class: gpu.nvidia.com, selectors: [\"$h100\"]" "1 of class gpu.nvidia.com with these selectors requested, 0 on the largest node" &&
	warned "class: nic.example.com" "DeviceClass nic.example.com does not exist" &&
	warned "first: [{class: gpu.nvidia.com, count: 9}, {class: gpu.nvidia.com, count: 2, selectors: [\"$h100\"]}]" "9 of class gpu.nvidia.com requested, 8 on the largest node; 2 of class gpu.nvidia.com with these selectors requested, 0 on the largest node" &&
	warned "first: [{class: gpu.nvidia.com, count: 9}, {class: gpu.nvidia.com, count: 2}]" && warned "template: none" &&
	id=$(fake_job "claims: [{name: g, class: gpu.nvidia.com}]\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && warned "class: gpu.nvidia.com, count: 8" && gpuq cancel "$id" && gone 0
'

# named NAME COUNT [LINES]: a claim of this name that somebody made
named() {
	kube apply -n gpuq-jobs -f - >/dev/null <<-END
	apiVersion: resource.k8s.io/v1
	kind: ResourceClaim
	metadata: {name: $1}
	spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: ExactCount, count: $2}}]}}
	END
}

# consumers CLAIM N
consumers() {
	test "$(kube get "gpuq-jobs/resourceclaims/$1" | /usr/bin/python3 -c 'import json, sys; print(len(json.load(sys.stdin).get("status", {}).get("reservedFor", [])))')" = "$2"
}

# consumers_are CLAIM POD: this one, and no other
consumers_are() {
	consumers_got=$(kube get "gpuq-jobs/resourceclaims/$1" | /usr/bin/python3 -c 'import json, sys; print(*(r["name"] for r in json.load(sys.stdin).get("status", {}).get("reservedFor", [])))')
	[ "$consumers_got" = "$2" ] || { echo "$1 is reserved for ${consumers_got:-none}, not for $2"; return 1; }
}

# started_anew JOB POD: it runs, in a pod that is not that one (the_pod)
started_anew() {
	job_is "$1" state RUNNING && started_pod=$(the_pod "$1") && [ "$started_pod" != "$2" ]
}

unallocated() {
	test -z "$(kube get "gpuq-jobs/resourceclaims/$1" status.allocation)"
}

test_expect_success 'AC-DRA-2: the matrix row DRA: two devices by selector, allocated and reserved in one write; never the same ones twice' '
	afresh && slice other node2 1 1 0 4 "NVIDIA H100" && wait_for 60 n_devices node2 4 &&
	one=$(fake_job "claims: [{name: g, class: gpu.nvidia.com, count: 2, selectors: [\"$a100\"]}]\npods: 3\n$(fate hang=true)") &&
	two=$(fake_job "claims: [{name: g, class: gpu.nvidia.com, count: 2, selectors: [\"$a100\"]}]\n$(fate hang=true)") &&
	three=$(fake_job "claims: [{name: g, class: gpu.nvidia.com, selectors: [\"$a100\"]}]\n$(fate hang=true)") &&
	job_becomes "$one" RUNNING 120 && job_becomes "$two" RUNNING 120 && job_is "$three" state PENDING && claims_are 4 &&
	kube list gpuq-jobs/resourceclaims status.allocation.devices.results.0.device,status.allocation.devices.results.1.device >taken &&
	test "$(tr "\t" "\n" <taken | grep -c gpu-)" = 8 && test "$(tr "\t" "\n" <taken | sort -u | grep -c gpu-)" = 8 &&
	test "$(kube list gpuq-jobs/resourceclaims status.reservedFor.0.resource | grep -c pods)" = 4 && node_frees node1 0 && node_frees node2 4 &&
	gpuq cancel "$two" && job_becomes "$three" RUNNING 120 && gpuq cancel "$one" "$three" && gone 0
'

test_expect_success 'AC-DRA-3: the first alternative that can be had' '
	afresh && first="claims: [{name: r, first: [{class: gpu.nvidia.com, count: 4, selectors: [\"$h100\"]}, {class: gpu.nvidia.com, count: 2, selectors: [\"$a100\"]}]}]" &&
	id=$(fake_job "$first\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && test "$(results_of "$(pods_of "$id")-r")" = "r/alt1:gpu-0 r/alt1:gpu-1 r/alt1:gpu-2 r/alt1:gpu-3" &&
	more=$(fake_job "$first\n$(fate hang=true)") && job_becomes "$more" RUNNING 120 && test "$(results_of "$(pods_of "$more")-r")" = "r/alt2:gpu-0 r/alt2:gpu-1" &&
	gpuq cancel "$id" "$more" && gone 0
'

test_expect_success 'AC-DRA-4: the claim of others stays, and is given back: also when its pod is deleted by force' '
	afresh && named shared 1 && id=$(fake_job "claims: [{name: g, claim: shared}]\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && wait_for 60 consumers shared 1 &&
	more=$(fake_job "claims: [{name: g, claim: shared}]\n$(fate hang=true)") && job_becomes "$more" RUNNING 120 && wait_for 60 consumers shared 2 &&
	gpuq cancel "$id" && wait_for 120 consumers_are shared "$(pods_of "$more")" && test -n "$(results_of shared)" &&
	first=$(the_pod "$more") && kube delete "$first" --grace 0 >/dev/null && wait_for 120 started_anew "$more" "$first" &&
	wait_for 120 consumers_are shared "$(pods_of "$more")" && test -n "$(results_of shared)" &&
	gpuq cancel "$more" && wait_for 120 consumers shared 0 && wait_for 120 unallocated shared && claims_are 1 &&
	kube delete gpuq-jobs/resourceclaims/shared >/dev/null && gone 0
'

# claim_gone NAME UID
claim_gone() {
	[ "$(kube get "gpuq-jobs/resourceclaims/$1" metadata.uid 2>/dev/null)" != "$2" ]
}

test_expect_success 'AC-DRA-4: gpuqd alone gives back what a pod of a job that goes on has left behind, and what a job has' '
	afresh && id=$(fake_job "pods: {min: 1, max: 2}\nclaims: [{name: g, class: gpu.nvidia.com}]\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && wait_for 120 n_pods "$id" 2 && wait_for 120 claims_are 2 &&
	first=$(pods_of "$id" | head -n 1) && wait_for 60 consumers "$first-g" 1 && uid=$(kube get "gpuq-jobs/resourceclaims/$first-g" metadata.uid) && cluster pause kube-controller-manager &&
	kube delete "gpuq-jobs/pods/$first" --grace 0 >/dev/null && wait_for 120 claim_gone "$first-g" "$uid" && gpuq cancel "$id" && gone 0 && cluster resume kube-controller-manager
'

test_expect_success 'templates: the claim that the controller manager makes is allocated; a manifest as it is' '
	afresh && kube apply -n gpuq-jobs -f - >/dev/null <<-END &&
	apiVersion: resource.k8s.io/v1
	kind: ResourceClaimTemplate
	metadata: {name: pair}
	spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}], constraints: [{matchAttribute: gpu.nvidia.com/productName}]}}}
	END
	sleep 1 && cat >pod.yaml <<-END &&
	apiVersion: v1
	kind: Pod
	metadata: {name: dra, annotations: {gpuq.test/hang: "true"}}
	spec:
	  containers: [{name: main, image: $kube_image, command: [sleep, "1"], resources: {claims: [{name: gpu}]}}]
	  resourceClaims: [{name: gpu, resourceClaimTemplateName: pair}]
	END
	id=$(submit pod.yaml) && job_becomes "$id" RUNNING 120 && job_is "$id" gpus 2 && claims_are 1 && gpuq cancel "$id" && gone 0
'

test_expect_success 'what is wrong is refused with its column, or waited for with its object' '
	afresh && printf "image: $kube_image\ncommand: [sleep]\nclaims:\n- {name: g, class: x, selectors: [\"device.driver.matches(1)\"]}\n" >bad.yaml && test_must_fail gpuq submit bad.yaml 2>err && grep "bad.yaml:4:50: claims.*column 15" err &&
	id=$(fake_job "claims: [{name: g, class: later}]") && wait_for 60 job_is "$id" reason DeviceClaim && job_is "$id" reasons.0.object "DeviceClass later does not exist" &&
	class later "device.driver.matches(\x27x\x27)" && wait_for 60 job_is "$id" reason DeviceClaim && gpuq why "$id" && class later "$nvidia" && job_becomes "$id" COMPLETED 120 && gone 0
'

# mig NAME NODE: two instances that want one slice of memory, and one that wants another; the counters are in a slice of their own
mig() {
	/usr/bin/python3 -c '
import json, sys
name, node = sys.argv[1:]
def counters(*n): return {f"memory-slice-{i}": {"value": "1"} for i in n}
def instance(i, n): return {"name": f"gpu-0-mig-{i}", "attributes": {"type": {"string": "mig"}}, "consumesCounters": [{"counterSet": "gpu-0", "counters": counters(n)}]}
def slice(name, more): return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": dict(
    driver="mig.nvidia.com", nodeName=node, pool={"name": node, "generation": 1, "resourceSliceCount": 2}, **more)}
print(json.dumps(slice(name + "-counters", {"sharedCounters": [{"name": "gpu-0", "counters": counters(2, 3)}]})))
print("---")
print(json.dumps(slice(name, {"devices": [instance(0, 2), instance(1, 2), instance(2, 3)]})))' "$@" | kube apply -f - >/dev/null
}

test_expect_success 'AC-DRA-5: two instances that share a slice of memory are never both allocated' '
	afresh && class part.example.com "device.driver == \x27mig.nvidia.com\x27" && mig mig node2 &&
	two=$(fake_job "claims: [{name: m, class: part.example.com, count: 2}]\n$(fate hang=true)") && job_becomes "$two" RUNNING 120 &&
	test "$(results_of "$(pods_of "$two")-m")" = "m:gpu-0-mig-0 m:gpu-0-mig-2" && job_is "$two" gpus 0 &&
	one=$(fake_job "claims: [{name: m, class: part.example.com}]\n$(fate hang=true)") && wait_for 60 job_is "$one" reason Resources && claims_are 1 &&
	gpuq cancel "$two" && job_becomes "$one" RUNNING 120 && gpuq cancel "$one" && gone 0
'

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

# killed_at FAILPOINT: gpuqd dies at that step of a job; the next one ends it well, with one pod and one claim
killed_at() {
	afresh && stop_gpuqd && GPUQ_FAILPOINT="$1" && export GPUQ_FAILPOINT && start_kube_gpuqd && killed_id=$(fake_job "claims: [{name: g, class: gpu.nvidia.com, count: 2}]\n$(fate hang=true)") &&
		wait_for 60 gpuqd_is_dead && unset GPUQ_FAILPOINT && start_kube_gpuqd && job_becomes "$killed_id" RUNNING 120 &&
		n_pods "$killed_id" 1 && job_is "$killed_id" attempt 0 && claims_are 1 && consumers "$(pods_of "$killed_id")-g" 1 && gpuq cancel "$killed_id" && gone 0
}

test_expect_success FAILPOINTS 'killed before the claim is made: one pod, one allocation' 'killed_at kube.claim.make=kill'
test_expect_success FAILPOINTS 'killed after the claim was made: likewise' 'killed_at kube.claim.answered=kill'
test_expect_success FAILPOINTS 'killed before it is allocated: likewise' 'killed_at kube.claim.allocate=kill'
test_expect_success FAILPOINTS 'killed before the pod is bound, with its devices: likewise' 'killed_at kube.bind=kill'

test_expect_success 'AC-DRA-6: without the right to allocate jobs wait, and doctor names the rule' '
	afresh && kube get clusterroles/gpuqd-dra >role.json &&
	/usr/bin/python3 -c "
import json
role = json.load(open(\"role.json\"))
role[\"rules\"] = [r for r in role[\"rules\"] if \"resourceclaims/binding\" not in r[\"resources\"]]
role[\"metadata\"] = {\"name\": \"gpuqd-dra\"}
json.dump(role, open(\"less.json\", \"w\"))" && kube apply -f less.json >/dev/null && sleep 1 &&
	id=$(fake_job "claims: [{name: g, class: gpu.nvidia.com}]") && wait_for 60 job_is "$id" reason ClusterRefused && job_is "$id" reasons.0.object resourceclaims/binding && test "$(job "$id" attempt)" -le 1 && gone 0 &&
	{ gpuq doctor >out || :; } && grep "resourceclaims/binding" out && gpuq why "$id" &&
	more=$(fake_job "claims: [{name: g, class: gpu.nvidia.com}]") && wait_for 60 job_is "$more" reason ClusterRefused && wait_for 60 says_of "$more" "resourceclaims/binding"
'

test_expect_success 'AC-DRA-6: once the right is there again, jobs go on within two minutes' '
	kube apply -f "$test_source/etc/kubernetes/optional/dra.yaml" >/dev/null && job_becomes "$id" COMPLETED 150 && job_becomes "$more" COMPLETED 60 && gone 0
'

test_expect_success 'AC-DRA-6: without any right from the start, doctor names the rules and their file, the job has the words of the cluster' '
	afresh && stop_gpuqd && kube delete clusterrolebindings/gpuqd-dra >/dev/null && sleep 1 && start_kube_gpuqd &&
	{ gpuq doctor >out || :; } && grep -q "dra: the cluster has resource.k8s.io/v1, but gpuqd may not use it: .*resourceslices" out &&
	id=$(fake_job "claims: [{name: g, class: gpu.nvidia.com}]") && wait_for 60 job_is "$id" reason ClusterRefused && says_of "$id" "cannot list resource .*resourceslices" &&
	{ gpuq doctor >out || :; } && grep "claims of devices: the account of gpuqd may not .*list resourceslices" out && grep "dra: .*gpuqd may not list resourceslices" out && grep "optional/dra.yaml" out &&
	kube apply -f "$test_source/etc/kubernetes/optional/dra.yaml" >/dev/null && job_becomes "$id" COMPLETED 150 && gone 0
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
