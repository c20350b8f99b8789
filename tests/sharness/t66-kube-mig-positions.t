#!/bin/sh
test_description='real control plane: MIG instances have positions on their card, as ResourceSlices tell them'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/dra.sh"

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/dra.yaml" --nodes 1 --gpus 0

# card NODE: an A100 of 40 GiB, as NVIDIA's driver publishes it: every instance that may be made, with the slices of
# memory that it would occupy; the counters are in a slice of their own
card() {
	/usr/bin/python3 -c '
import json, sys
node = sys.argv[1]
def counters(at, n): return {f"memory-slice-{i}": {"value": "1"} for i in range(at, at + n)}
def instance(profile, number, at, n): return {"name": f"gpu-0-mig-{profile}-{number}-{at}".replace(".", ""),
    "attributes": {"type": {"string": "mig"}, "profile": {"string": profile}}, "consumesCounters": [{"counterSet": "gpu-0", "counters": counters(at, n)}]}
def slice(name, more): return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": dict(
    driver="mig.nvidia.com", nodeName=node, pool={"name": node, "generation": 1, "resourceSliceCount": 2}, **more)}
print(json.dumps(slice("counters", {"sharedCounters": [{"name": "gpu-0", "counters": counters(0, 8)}]})))
print("---")
print(json.dumps(slice("instances", {"devices": [instance("1g.5gb", 19, at, 1) for at in range(7)] + [instance("3g.20gb", 9, at, 4) for at in (0, 4)]})))' "$1" |
		kube apply -f - >/dev/null
}

# instance CLASS [SELECTOR]: a job of one, until it is cancelled
instance() {
	fake_job "claims: [{name: m, class: $1${2+, selectors: [\"$2\"]}}]\n$(fate hang=true)"
}

# has JOB DEVICE: the claim of its pod is allocated to it
has() {
	has_got=$(kube get "gpuq-jobs/resourceclaims/$(pods_of "$1")-m" | /usr/bin/python3 -c '
import json, sys
print(*(r["device"] for r in json.load(sys.stdin)["status"]["allocation"]["devices"]["results"]))')
	[ "$has_got" = "$2" ] || { echo "job $1 has $has_got, not $2"; return 1; }
}

profile="device.attributes['mig.nvidia.com'].profile"

test_expect_success 'AC-NV-5: beside an instance of 1g at 2 one of 3g is at 4, and another does not fit; it says what is in the way' '
	class small.example.com "$profile == \x271g.5gb\x27" && class large.example.com "$profile == \x273g.20gb\x27" && card node1 && start_kube_gpuqd &&
	at0=$(instance small.example.com) && job_becomes "$at0" RUNNING 120 && has "$at0" gpu-0-mig-1g5gb-19-0 &&
	at1=$(instance small.example.com) && job_becomes "$at1" RUNNING 120 && at2=$(instance small.example.com) && job_becomes "$at2" RUNNING 120 && has "$at2" gpu-0-mig-1g5gb-19-2 &&
	gpuq cancel "$at0" "$at1" && job_becomes "$at1" CANCELLED && three=$(instance large.example.com) && job_becomes "$three" RUNNING 120 && has "$three" gpu-0-mig-3g20gb-9-4 &&
	second=$(instance large.example.com) && wait_for 60 job_is "$second" reason Resources && job "$second" reasons.0.object >object.out && grep -q "^claims/large.example.com/" object.out &&
	wait_for 60 eval "gpuq why $second >why.out; grep -q \"after this job has ended: $three \" why.out"
'

test_expect_success 'when the small one is gone, the other half is free' '
	gpuq cancel "$at2" && job_becomes "$second" RUNNING 120 && has "$second" gpu-0-mig-3g20gb-9-0 && has "$three" gpu-0-mig-3g20gb-9-4 &&
	late=$(instance small.example.com) && wait_for 60 job_is "$late" reason Resources && gpuq cancel "$three" && job_becomes "$late" RUNNING 120 && has "$late" gpu-0-mig-1g5gb-19-4
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
