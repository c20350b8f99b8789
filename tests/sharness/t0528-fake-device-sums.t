#!/bin/sh
test_description='instances, parts and other resources in nodes, queues, status and report'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# field FILE RESOURCE: its whole seconds in the rows of a report
field() {
	/usr/bin/python3 -c '
import json, sys
print(int(sum(json.loads(l)["resource_seconds"].get(sys.argv[2], 0) for l in open(sys.argv[1]))))' "$@"
}

test_expect_success 'a card in instances, devices with adapters, replicas: each of its flavor' '
	start_fake --nodes 3 --gpus 4 &&
	offers node-0000 "\"nvidia.com/gpu\": null, \"nvidia.com/mig-1g.5gb\": \"3\", \"nvidia.com/mig-2g.10gb\": \"1\"" \
		"\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB\", \"nvidia.com/gpu.memory\": \"40960\"" &&
	offers node-0001 "\"rdma/hca\": \"2\"" &&
	offers node-0002 "\"nvidia.com/gpu\": \"4\"" "\"nvidia.com/gpu.replicas\": \"4\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\"" &&
	cat >site.yaml <<-END &&
	version: 1
	flavors: [{name: a100, match: {product: "NVIDIA-A100*"}}]
	queues: [{name: default, quota: 20}]
	END
	start_fake_gpuqd --site site.yaml && wait_for 60 node_is node-0000 flavor a100 && wait_for 60 node_is node-0000 gpus 1 &&
	node_is node-0001 flavor default
'

test_expect_success 'a card that is cut shows its instances, who has them, memory and cores' '
	m=$(fake_job hang=true --mig 1g.5gb --flavor a100 2>warned) && ! grep . warned && job_becomes "$m" RUNNING && job_is "$m" pods.0.node node-0000 &&
	node_is node-0000 devices.0.state cut && node_is node-0000 devices.0.product NVIDIA-A100-SXM4-40GB &&
	node_is node-0000 devices.0.parts.0.job "$m" && node_is node-0000 devices.0.parts.0.memory_mib 5120 &&
	node_is node-0000 devices.0.parts.0.cores 14 && node_is node-0000 devices.0.parts.1.state free &&
	node_is node-0000 devices.0.parts.3.profile 2g.10gb && node_is node-0000 devices.0.parts_assumed false &&
	gpuq nodes -h -o NODE,DEVICE_STATE,BY node-0000 >by && grep "^node-0000 *cut *$m/[a-z0-9]*/default(0.143)" by
'

test_expect_success 'parts of a device: which, of whom, with their memory' '
	p=$(fake_job hang=true -g 0.25) && job_becomes "$p" RUNNING && node_is node-0002 devices.0.parts.0.kind replica &&
	node_is node-0002 devices.0.parts.0.job "$p" && node_is node-0002 devices.0.parts.0.cores null &&
	node_is node-0002 devices.0.used_cores 25 && node_is node-0002 devices.0.free_cores 75 &&
	p=$(fake_job hang=true -g 1) && job_becomes "$p" RUNNING && node_is node-0001 devices.0.parts.0.kind whole &&
	node_is node-0001 devices.0.parts.0.cores 100
'

test_expect_success 'other resources in queues and in the text of status' '
	echo "{command: [a], image: test, resources: {rdma/hca: 2}, annotations: {gpuq.test/run: 1s}}" >h.yaml && h=$(submit h.yaml) &&
	job_becomes "$h" RUNNING && gpuq queues --json default >q && test "$(json "resources.rdma/hca" <q)" = 2 &&
	grep -q "\"nvidia.com/mig-1g.5gb\":1[,}]" q && gpuq status >glance && grep "^Resources *.*rdma/hca 0/2" glance
'

test_expect_success 'a number as quota is that of each flavor, and no fair share is more than there is' '
	i=0 && while [ $((i += 1)) -le 3 ]; do last=$(fake_job hang=true -g 4) || return 1; done && wait_for 60 job_is "$last" state PENDING &&
	wait_for 60 eval "[ \"\$(gpuq queues --json default | json fair_share)\" != null ]" && gpuq queues --json default >q && cat q &&
	test "$(json quota <q)" = 20 && test "$(json each_flavor <q)" = true && gpuq queues -h -o QUOTA,LIMIT >text && grep "20 each" text &&
	test "$(json fair_share <q | cut -d. -f1)" -le 6
'

test_expect_success 'the report has them, of running and of ended pods, of whole days and parts of them' '
	wait_for 60 job_is "$h" state COMPLETED && gpuq report --json >r && cat r && test "$(field r rdma/hca)" -ge 2 &&
	test "$(field r nvidia.com/mig-1g.5gb)" -ge 1 && kill_gpuqd && start_fake_gpuqd && gpuq report --json --since "$(date -u +%FT00:00:01Z)" >r &&
	cat r && test "$(field r rdma/hca)" -ge 2 && gpuq report -h -o RESOURCES >text && grep "rdma/hca=0\." text
'

test_done
