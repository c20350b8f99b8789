#!/bin/sh
test_description='real control plane: GPUs of a device plugin and network cards by claims in one pod'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/dra.sh"

# The test is the driver of the network cards of nodes that kwok plays.
cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/dra.yaml" --nodes 2 --gpus 4

# cards NODE N [KIND]: nic-0 to nic-(N-1)
cards() {
	/usr/bin/python3 -c '
import json, sys
node, n, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
print(json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{node}-{kind}"}, "spec": {"driver": f"{kind}.example.com",
    "nodeName": node, "devices": [{"name": f"{kind}-{i}"} for i in range(n)], "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}))' "$1" "$2" "${3-nic}" | kube apply -f - >/dev/null
}

nic="claims: [{name: nic, class: nic.example.com}]"

# both N [LINE]...: a job of N GPUs and a network card, until it is cancelled
both() {
	both_lines=$(printf '%s\n' "gpus: $1" "$nic")
	shift
	for both_line; do both_lines=$(printf '%s\n' "$both_lines" "$both_line"); done
	fake_job "$both_lines\n$(fate hang=true)"
}

# card_of JOB: of its claim
card_of() {
	kube get "gpuq-jobs/resourceclaims/$(pods_of "$1")-nic" | /usr/bin/python3 -c '
import json, sys
print(*(r["pool"] + "/" + r["device"] for r in json.load(sys.stdin)["status"]["allocation"]["devices"]["results"]))'
}

# container JOB PATH: of its pod
container() {
	kube get "gpuq-jobs/pods/$(pods_of "$1")" "spec.containers.0.$2"
}

claims_are() {
	claims_got=$(kube list gpuq-jobs/resourceclaims metadata.name | grep -c .)
	[ "$claims_got" = "$1" ] || { echo "$claims_got claims, not $1"; return 1; }
}

# refused TEXT LINES
refused() {
	if fake_job "$2" >out 2>err; then
		echo "accepted: $2"
		return 1
	fi
	grep -F "$1" err || { cat err; return 1; }
}

test_expect_success 'a GPU of the plugin and a card by a claim: on the node that has both, bound when the claim is allocated' '
	class nic.example.com "device.driver == \x27nic.example.com\x27" && cards node1 2 && start_kube_gpuqd && wait_for 60 node_frees node1 4 && wait_for 60 node_frees node2 4 &&
	one=$(both 1) && job_becomes "$one" RUNNING 120 && job_is "$one" pods.0.node node1 && job_is "$one" gpus 1 && job_is "$one" attempt 0 && test "$(card_of "$one")" = node1/nic-0 &&
	container "$one" resources.limits >limits.out && grep -q "nvidia.com/gpu.: *.1.}" limits.out && test "$(container "$one" resources.claims.0.name)" = nic && container "$one" env >env.out && ! grep -q void env.out &&
	test "$(kube get "gpuq-jobs/pods/$(pods_of "$one")" spec.schedulerName)" = gpuq && node_frees node1 3
'

test_expect_success 'the third waits for a card, though GPUs are free; one without cards does not' '
	two=$(both 1) && job_becomes "$two" RUNNING 120 && test "$(card_of "$two")" = node1/nic-1 && three=$(both 1) && wait_for 60 job_is "$three" reason Resources &&
	job "$three" reasons.0.object >object.out && grep -q "^claims/nic.example.com/" object.out && plain=$(fake_job "gpus: 4\n$(fate hang=true)") && job_becomes "$plain" RUNNING 120 &&
	job_is "$plain" pods.0.node node2 && job_is "$three" state PENDING && node_frees node1 2
'

test_expect_success 'a card alone is not enough: the other node has one by now, but no GPU' '
	cards node2 1 && sleep 2 && job_is "$three" state PENDING && gpuq cancel "$plain" && job_becomes "$three" RUNNING 120 && job_is "$three" pods.0.node node2 && test "$(card_of "$three")" = node2/nic-0 &&
	job_is "$three" attempt 0
'

test_expect_success 'a restart knows whose devices are whose; what is given back is free' '
	stop_gpuqd && start_kube_gpuqd && wait_for 60 node_frees node1 2 && job_is "$one" gpus 1 && job_is "$one" state RUNNING && four=$(both 2) && wait_for 60 job_is "$four" state PENDING &&
	gpuq cancel "$one" "$three" && job_becomes "$four" RUNNING 120 && job_is "$four" gpus 2 && gpuq cancel "$two" "$four" && wait_for 60 claims_are 0 && wait_for 60 node_frees node1 4 && wait_for 60 node_frees node2 4
'

test_expect_success 'a gang of both, and a manifest' '
	gang=$(both 2 "pods: 2") && job_becomes "$gang" RUNNING 120 && job_is "$gang" gpus 4 && wait_for 60 claims_are 2 && gpuq cancel "$gang" && wait_for 60 claims_are 0 &&
	kube apply -f - >/dev/null <<-END &&
	{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: shared, namespace: gpuq-jobs}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: nic.example.com}}]}}}
	END
	cat >pod.yaml <<-END &&
	{apiVersion: v1, kind: Pod, metadata: {name: m, annotations: {gpuq.test/hang: "true"}}, spec: {resourceClaims: [{name: n, resourceClaimName: shared}],
	 containers: [{name: c, image: $kube_image, command: [a], resources: {limits: {nvidia.com/gpu: 1}, claims: [{name: n}]}}]}}
	END
	wait_for 60 eval "m=\$(submit pod.yaml)" && job_becomes "$m" RUNNING 120 && job_is "$m" gpus 1 && container "$m" resources.limits >limits.out && grep -q "nvidia.com/gpu.: *.1.}" limits.out && gpuq cancel "$m"
'

doctor_on_dra() {
	{ gpuq doctor --json || :; } | grep "\"backend\":\"dra\"" >found
	cat found
	grep "\"state\":\"$1\"" found | grep -q "$2"
}

test_expect_success 'doctor names the nodes where slices are not used beside a device plugin: those of devices that quotas count' '
	wait_for 60 doctor_on_dra absent "no node has devices" && ! grep -q broken found && cards node1 2 gpu && wait_for 60 doctor_on_dra broken "Slices are not: node1 (nvidia.com/gpu)\"" &&
	grep -q "remove the device plugin" found && wait_for 60 node_frees node1 4 && cards node2 1 gpu && wait_for 60 doctor_on_dra broken ": node1 (nvidia.com/gpu), node2 (nvidia.com/gpu)\"" &&
	kube delete resourceslices/node1-gpu >/dev/null && wait_for 60 doctor_on_dra broken "are not: node2 (nvidia.com/gpu)\"" && kube delete resourceslices/node2-gpu >/dev/null &&
	wait_for 60 doctor_on_dra absent "no node has devices" && ! grep -q broken found
'

test_expect_success 'claims of devices that quotas count do not stand beside others; nor what is not there' '
	class gpu.example.com "device.driver == \x27gpu.example.com\x27" && refused "the devices of claims are counted, 1 of each pod" "gpus: 2\nclaims: [{name: g, class: gpu.example.com}]" &&
	refused "ResourceClaimTemplate missing does not exist: beside devices of a plugin" "gpus: 1\nclaims: [{name: g, template: missing}]" &&
	echo "{version: 1, flavors: [{name: card, device_class: nic.example.com}], pools: [{name: n, flavor: card, selector: {none: none}}]}" >site.yaml && gpuq apply -f site.yaml &&
	refused "the devices of claims are counted, 1 of each pod" "gpus: 2\n$nic"
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
