#!/bin/sh
test_description='what nodes offer in instances, replicas and parts: after a restart, in their state, in fair shares'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

single="\"nvidia.com/mig.strategy\": \"single\", \"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb\", \"nvidia.com/gpu.memory\": \"4864\", \"nvidia.com/gpu.count\": \"7\""
cores="[{\"id\":\"GPU-d0\",\"index\":0,\"count\":10,\"devmem\":40960,\"devcore\":100,\"type\":\"NVIDIA A100\",\"numa\":0,\"health\":true},{\"id\":\"GPU-d1\",\"index\":1,\"count\":10,\"devmem\":40960,\"devcore\":100,\"type\":\"NVIDIA A100\",\"numa\":1,\"health\":true}]"

# sums: what the nodes, the queue and the cluster are said to have, without what changes by time alone
sums() {
	{ gpuq nodes --json && gpuq queues --json && gpuq status --json; } | /usr/bin/python3 -c '
import json, sys
def keep(v, path=""):
    if isinstance(v, dict):
        return {k: keep(x, k) for k, x in sorted(v.items()) if k not in ("last_seen", "cluster", "fair_share", "used_gpu_minutes", "server", "scheduler", "uptime_s", "start_time", "cycle")}
    return [keep(x) for x in v] if isinstance(v, list) else v
for line in sys.stdin:
    v = json.loads(line)
    if "devices" in v and "name" not in v: v = {k: v[k] for k in ("gpus", "devices", "resources") if k in v}
    print(json.dumps(keep(v), sort_keys=True))'
}

test_expect_success 'nodes of each kind: mixed and single instances, replicas, HAMi, gpushare, another resource' '
	start_fake --nodes 6 --gpus 4 &&
	offers node-0000 "\"nvidia.com/gpu\": null, \"nvidia.com/mig-1g.5gb\": \"5\", \"nvidia.com/mig-2g.10gb\": \"1\"" "\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB\", \"nvidia.com/gpu.memory\": \"40960\"" &&
	offers node-0001 "\"nvidia.com/gpu\": \"7\"" "$single" &&
	offers node-0002 "\"nvidia.com/gpu\": \"8\"" "\"nvidia.com/gpu.replicas\": \"4\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\", \"nvidia.com/gpu.count\": \"2\"" &&
	offers node-0003 "\"nvidia.com/gpu\": \"20\"" && api PATCH /nodes/node-0003 "{\"metadata\": {\"annotations\": {\"hami.io/node-nvidia-register\": \"$(echo "$cores" | sed "s/\"/\\\\\"/g")\"}}}" >/dev/null &&
	offers node-0004 "\"nvidia.com/gpu\": null, \"aliyun.com/gpu-mem\": \"30\", \"aliyun.com/gpu-count\": \"2\"" && offers node-0005 "\"rdma/hca\": \"2\"" &&
	cat >site.yaml <<-END &&
	version: 1
	flavors: [{name: a100, match: {product: "NVIDIA-A100*"}}]
	queues: [{name: default}]
	END
	start_fake_gpuqd --site site.yaml && wait_for 60 node_is node-0000 gpus 1 && wait_for 60 node_is node-0001 gpus 1 && wait_for 60 node_is node-0002 gpus 2 && wait_for 60 node_is node-0003 gpus 2 &&
	wait_for 60 node_is node-0004 gpus 2 && wait_for 60 node_is node-0005 resources.rdma/hca.total 2 && node_is node-0000 flavor a100 && node_is node-0003 sharing hami && node_is node-0002 devices.1.free_milli 1000
'

test_expect_success 'a restart without the cluster finds each of them as it was' '
	m=$(fake_job hang=true --mig 1g.5gb -w node-0000) && job_becomes "$m" RUNNING && s=$(fake_job hang=true --mig 1g.5gb -w node-0001) && job_becomes "$s" RUNNING &&
	p=$(fake_job hang=true -g 0.25 -w node-0002) && job_becomes "$p" RUNNING && sums >before && stop_gpuqd && stop_fake &&
	start_gpuqd --kubeconfig "$PWD/kubeconfig" && wait_for 60 is_stale && sums >after && diff before after
'

# node_shows NODE STATE
node_shows() {
	gpuq nodes -h -o NODE,STATE >nodes.out && grep "^$1 *$2 *$" nodes.out
}

test_expect_success 'a node of which pods of others have an instance is in use, one of which all are taken is allocated' '
	kill_gpuqd && start_fake --nodes 3 --gpus 1 && offers node-0000 "\"nvidia.com/gpu\": null, \"nvidia.com/mig-1g.5gb\": \"7\"" "\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB\"" &&
	offers node-0001 "\"nvidia.com/gpu\": \"7\"" "$single" && offers node-0002 "\"nvidia.com/mig-3g.20gb\": \"1\"" && rm -rf state && start_fake_gpuqd --site site.yaml &&
	wait_for 60 node_is node-0001 gpus 1 && wait_for 60 node_is node-0002 gpus 2 && node_shows node-0000 idle && theirs a node-0000 "\"nvidia.com/mig-1g.5gb\": \"1\"" && theirs b node-0001 "\"nvidia.com/gpu\": \"7\"" &&
	wait_for 60 node_shows node-0000 mixed && wait_for 60 node_shows node-0001 alloc &&
	echo "{command: [a], image: test, mig: 1g.5gb, array: 0-5, annotations: {gpuq.test/hang: \"true\"}}" >six.yaml && j=$(submit six.yaml) && job_becomes "${j}_5" RUNNING && wait_for 60 node_shows node-0000 alloc &&
	g=$(fake_job hang=true -g 1) && job_becomes "$g" RUNNING && node_shows node-0002 mixed && i=$(fake_job hang=true --mig 3g.20gb) && job_becomes "$i" RUNNING && node_shows node-0002 alloc && all_gone
'

# add_up LEAST: fair shares of queues are that much at least, and no more than the two cards
add_up() {
	gpuq queues --json | /usr/bin/python3 -c '
import json, sys
shares = [json.loads(l)["fair_share"] or 0 for l in sys.stdin]
print(shares)
sys.exit(not float(sys.argv[1]) <= sum(shares) <= 2)' "$1"
}

test_expect_success 'fair shares of sevenths add up to no more than the cards that are there' '
	api DELETE /namespaces/default/pods/a >/dev/null && api DELETE /namespaces/default/pods/b >/dev/null && gpuq drain node-0002 && wait_for 60 eval "[ \"\$(gpuq status --json | json devices.free)\" = 2 ]" &&
	echo "{version: 1, queues: [{name: default}, {name: a}, {name: b, quota: 1}]}" | gpuq apply -f - && for q in a b; do
		echo "{command: [a], image: test, queue: $q, mig: 1g.5gb, array: 0-8, annotations: {gpuq.test/hang: \"true\"}}" >q.yaml && last=$(submit q.yaml) || return 1
	done && job_becomes "${last}_0" RUNNING && wait_for 60 add_up 1.99 && add_up 1.99 && all_gone
'

replicas="\"nvidia.com/gpu.replicas\": \"4\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\""

test_expect_success 'resources of the cluster stand for as many devices as there are cards' '
	gpuq resume node-0002 && offers node-0000 "\"nvidia.com/mig-1g.5gb\": null, \"nvidia.com/gpu\": \"8\"" "\"nvidia.com/gpu.count\": \"2\", $replicas" && wait_for 60 node_is node-0000 gpus 2 && wait_for 60 node_is node-0000 free_gpus 2 &&
	gpuq status --json >status.out && cat status.out && grep -qF "\"nvidia.com/gpu\":{\"total\":16,\"free\":16,\"devices\":4,\"free_devices\":4,\"slots\":16,\"free_slots\":16}" status.out && test "$(json gpus <status.out)" = 5 &&
	gpuq status >glance && ! grep "^Resources.*nvidia.com/gpu " glance
'

test_expect_success 'a replica of another name than those of a node is not had there, which the reason tells; parts have the name that is there' '
	gpuq drain node-0001 node-0002 && offers node-0001 "\"aliyun.com/gpu-mem\": \"15\", \"aliyun.com/gpu-count\": \"1\", \"nvidia.com/gpu\": null" && wait_for 60 node_is node-0001 sharing gpushare && pod s "nvidia.com/gpu.shared: 1" >s.yaml &&
	s=$(submit s.yaml 2>warned) && cat warned && ! grep gpushare warned && wait_for 60 job_is "$s" reason Unsatisfiable && gpuq why "$s" >why.out && cat why.out && grep "nvidia.com/gpu.shared" why.out &&
	p=$(fake_job hang=true -g 0.1) && job_becomes "$p" RUNNING && test "$(limits "$p")" = "{\"nvidia.com/gpu\": \"1\"}" && gpuq cancel "$p" &&
	offers node-0000 "\"nvidia.com/gpu\": null, \"nvidia.com/gpu.shared\": \"8\"" && job_becomes "$s" RUNNING && p=$(fake_job hang=true -g 0.1) && job_becomes "$p" RUNNING && test "$(limits "$p")" = "{\"nvidia.com/gpu.shared\": \"1\"}" && all_gone
'

no_harm_was_done

test_done
