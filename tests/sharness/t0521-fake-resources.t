#!/bin/sh
test_description='every resource of a node is counted: adapters, devices of other makers, replicas, single-strategy MIG'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# adds_up: devices by state are what there is
adds_up() {
	gpuq status --json | /usr/bin/python3 -c '
import json, sys
s = json.load(sys.stdin)
d = s["devices"]
print(s["gpus"], d, s["stranded_by"])
assert abs(sum(d.values()) - s["gpus"]) < 0.0005 and d["allocated"] == 0.143'
}

test_expect_success 'ten nodes of eight devices and one adapter each' '
	start_fake --nodes 10 --gpus 8 && for n in 0 1 2 3 4 5 6 7 8 9; do
		offers node-000$n "\"rdma/hca\": \"1\"" || return 1
	done && start_fake_gpuqd && wait_for 60 node_is node-0009 "resources.rdma/hca.free" 1
'

test_expect_success 'of jobs with a device and an adapter ten run, the others wait for the adapter, none is refused' '
	i=0 && while [ $((i += 1)) -le 40 ]; do pod "r$i" "nvidia.com/gpu: 1, rdma/hca: 1" >r.yaml && last=$(submit r.yaml) || return 1; done &&
	wait_for 60 eval "[ \"\$(gpuq queue -h -t R | wc -l)\" = 10 ]" && wait_for 60 job_is "$last" reason Resources &&
	gpuq nodes --json >nodes.out && ! grep "\"suspect\"" nodes.out && job_is "$last" reasons.0.object rdma/hca && job_is "$last" reasons.0.have 0 && job_is "$last" reasons.0.need 1 &&
	gpuq why "$last" >why && grep -q "rdma/hca" why && test "$(fake /fake/audit failed)" = 0 && test "$(fake /fake/audit creates)" = 10
'

test_expect_success 'the exported scenario has them as well: nothing would start' '
	gpuq export --scenario >now.yaml && "$test_build/gpuqd/gpuq-sim" run now.yaml >now.out && says now.out "running +1 +node-" &&
	test "$(grep -c "^ *running" now.out)" = 10 && ! grep "^ *started" now.out && test "$(grep -c "Resources rdma/hca" now.out)" = 30
'

test_expect_success 'jobs of others run beside them, on all the devices that are left' '
	i=0 && while [ $((i += 1)) -le 10 ]; do fake_job hang=true -g 7 >/dev/null || return 1; done &&
	wait_for 60 eval "[ \"\$(gpuq queue -h -t R | wc -l)\" = 20 ]" && test "$(free_gpus)" = 0 && all_gone
'

test_expect_success 'of two resources the one is named that lacks on the node that has both' '
	offers node-0009 "\"example.com/nic\": \"2\"" && wait_for 60 eval "node node-0009 resources | grep -q example.com/nic" &&
	pod both "rdma/hca: 1, example.com/nic: 1" >both.yaml && a=$(submit both.yaml) && job_becomes "$a" RUNNING && b=$(submit both.yaml) &&
	wait_for 60 job_is "$b" reason Resources && job_is "$b" reasons.0.object rdma/hca && job_is "$b" reasons.0.have 0 && job_is "$b" reasons.0.need 1 &&
	gpuq why "$b" >why && says why "or other resources now" && gpuq cancel "$a" && job_becomes "$b" RUNNING && all_gone
'

test_expect_success 'two resources that no one node has together are named at submit' '
	offers node-0009 "\"rdma/hca\": null" && wait_for 60 eval "test \$(node node-0009 resources | grep -c rdma) = 0" &&
	b=$(submit both.yaml 2>warned) && says warned "no node has all of 1 example.com/nic, 1 rdma/hca" && wait_for 60 job_is "$b" reason Unsatisfiable &&
	job_is "$b" reasons.0.need 1 && job_is "$b" reasons.0.have 0 && ! job_is "$b" reasons.0.object pods >/dev/null && gpuq cancel "$b" &&
	offers node-0009 "\"rdma/hca\": \"1\", \"example.com/nic\": null" && wait_for 60 node_is node-0009 "resources.rdma/hca.free" 1
'

test_expect_success 'a resource that no node has is told at submit, and the job waits' '
	pod nowhere "example.com/nic: 2" >n.yaml && n=$(submit n.yaml 2>warned) && grep "2 example.com/nic requested, 0 on the largest node" warned &&
	printf "image: test\ncommand: [a]\nmig: 3g.20gb\n" >mig.yaml && mig=$(submit mig.yaml 2>warned) && grep "1 3g.20gb requested, 0 on the largest node" warned && gpuq cancel "$mig" &&
	pod pages "hugepages-2Mi: 4Mi" >pages.yaml && pages=$(submit pages.yaml 2>warned) && grep "4Mi hugepages-2Mi requested, 0 on the largest node" warned && gpuq cancel "$pages" &&
	wait_for 60 job_is "$n" reason Unsatisfiable && job_is "$n" reasons.0.object example.com/nic && gpuq cancel "$n"
'

test_expect_success 'a part of a device where no node serves parts is told at submit as well, and the reason names it' '
	lacks() { # TEXT OBJECT HAVE NEED
		printf "image: test\ncommand: [a]\n$1\n" >part.yaml && part=$(submit part.yaml 2>warned) && grep "$2" warned &&
		wait_for 60 job_is "$part" reason Unsatisfiable && job_is "$part" reasons.0.object "$3" && job_is "$part" reasons.0.have "$4" &&
		job_is "$part" reasons.0.need "$5" && gpuq cancel "$part"
	} &&
	lacks "gpus: 0.5" "a part of a device requested by gpus, and no node serves such parts" parts 0 0.5 &&
	lacks "gpu_cores: 30" "requested by gpu_cores, and no node serves" gpu_cores 0 30 &&
	lacks "gpu_memory: 10Gi" "requested by gpu_memory, and no node serves" gpu_memory 0 10737418240 &&
	lacks "mig: [3g.20gb, 2g.10gb]" "1 3g.20gb or 2g.10gb requested, 0 on the largest node" 2g.10gb 0 1 &&
	echo "{command: [a], image: test, gpus: 1}" >whole.yaml && gpuq submit --dry-run whole.yaml 2>warned >/dev/null && ! grep "no node can hold" warned
'

test_expect_success 'nor do nodes that a pool with whole devices could get; those of a pool that shares them would' '
	grows() { # SHARING
		echo "{version: 1, flavors: [{name: t4}], pools: [{name: cloud, selector: {x: y}, flavor: t4, sharing: $1, provisioning: {kind: autoscaler, machine: {gpus: 4, labels: {x: y}}, max_nodes: 2}}]}" | gpuq apply -f -
	} &&
	echo "{command: [a], image: test, gpus: 0.5}" >half.yaml && echo "{command: [a], image: test, mig: 1g.5gb}" >slice.yaml &&
	grows whole && gpuq submit --dry-run half.yaml 2>warned >/dev/null && grep "no node serves such parts" warned &&
	half=$(submit half.yaml 2>warned) && wait_for 60 job_is "$half" reason Unsatisfiable && gpuq cancel "$half" &&
	gpuq submit --dry-run slice.yaml 2>warned >/dev/null && grep "1 1g.5gb requested, 0 on the largest" warned &&
	grows gpushare && gpuq submit --dry-run half.yaml 2>warned >/dev/null && ! grep "no node can hold" warned &&
	echo "{version: 1, queues: [{name: default}]}" >none.yaml && gpuq apply --prune -f none.yaml
'

test_expect_success 'a job file asks by resources, and its pod is given just that' '
	wait_for 60 node_is node-0000 "resources.rdma/hca.free" 1 &&
	echo "{command: [a], image: test, resources: {rdma/hca: 1}, annotations: {gpuq.test/hang: \"true\"}}" >f.yaml &&
	f=$(submit f.yaml) && job_becomes "$f" RUNNING && test "$(limits "$f")" = "{\"cpu\": \"1\", \"rdma/hca\": \"1\"}" &&
	job_is "$f" resources.rdma/hca 1 && all_gone
'

test_expect_success 'what a job asks by resources is in its JSON: of all pods, at the size that it has' '
	cat >two.yaml <<-\END &&
	image: test
	annotations: {gpuq.test/hang: "true"}
	groups:
	- {name: a, pods: 3, command: [a], resources: {rdma/hca: 1, hugepages-2Mi: 4Mi}}
	- {name: b, command: [a], resources: {rdma/hca: 2}}
	END
	gpuq submit --dry-run --json two.yaml 2>warned | grep "\"resources\":{\"hugepages-2Mi\":12582912,\"rdma/hca\":5}" &&
	echo "{command: [a], image: test, pods: {min: 2, max: 4}, resources: {rdma/hca: 1}, annotations: {gpuq.test/hang: \"true\"}}" >e.yaml &&
	e=$(submit --hold e.yaml) && job_is "$e" resources.rdma/hca 2 && gpuq release "$e" && job_becomes "$e" RUNNING &&
	wait_for 60 job_is "$e" resources.rdma/hca 4 && plain=$(fake_job hang=true -g 1) && gpuq status --json "$plain" | grep "\"resources\":{}" && all_gone
'

test_expect_success 'devices of another maker: counted as devices, for those who name them or their flavor' '
	offers node-0001 "\"nvidia.com/gpu\": null, \"amd.com/gpu\": \"4\"" &&
	echo "{version: 1, flavors: [{name: mi300, resource: amd.com/gpu}]}" | gpuq apply -f - &&
	wait_for 60 node_is node-0001 gpus 4 && wait_for 60 node_is node-0001 flavor mi300 &&
	pod amd "amd.com/gpu: 3" >a.yaml && a=$(submit a.yaml) && job_becomes "$a" RUNNING && job_is "$a" pods.0.node node-0001 &&
	job_is "$a" gpus 3 && wait_for 60 node_is node-0001 free_gpus 1 &&
	b=$(fake_job hang=true -g mi300:1) && job_becomes "$b" RUNNING && job_is "$b" pods.0.node node-0001 &&
	test "$(limits "$b")" = "{\"amd.com/gpu\": \"1\"}" && all_gone
'

test_expect_success 'without a name or a flavor devices are NVIDIA'\''s' '
	i=0 && while [ $((i += 1)) -le 9 ]; do fake_job hang=true -g 8 >/dev/null || return 1; done &&
	wait_for 60 eval "[ \"\$(gpuq queue -h -t R | wc -l)\" = 9 ]" && c=$(fake_job hang=true -g 1) &&
	wait_for 60 job_is "$c" reason Resources && node_is node-0001 free_gpus 4 && all_gone
'

test_expect_success 'ten replicas of each of eight cards are eight devices' '
	offers node-0002 "\"nvidia.com/gpu\": \"80\"" "\"nvidia.com/gpu.replicas\": \"10\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\",
		\"nvidia.com/gpu.product\": \"NVIDIA-H100-SHARED\"" && wait_for 60 node_is node-0002 gpus 8
'

test_expect_success 'a part that fits into a replica takes one and is charged it; a whole device is not to be had there' '
	echo "{command: [a], image: test, gpus: 0.05, nodes: [node-0002], annotations: {gpuq.test/hang: \"true\"}}" >p.yaml && p=$(submit p.yaml) &&
	job_becomes "$p" RUNNING && test "$(limits "$p")" = "{\"nvidia.com/gpu\": \"1\"}" && wait_for 60 node_is node-0002 free_gpus 7.9 &&
	echo "{command: [a], image: test, gpus: 0.2, nodes: [node-0002]}" >q.yaml && q=$(submit q.yaml 2>warned) && wait_for 60 job_is "$q" reason Unsatisfiable &&
	grep "0.2 of a device requested, 0.1 on the largest node" warned && job_is "$q" reasons.0.object parts && job_is "$q" reasons.0.have 0.1 && job_is "$q" reasons.0.need 0.2 &&
	echo "{command: [a], image: test, gpus: 1, nodes: [node-0002]}" >w.yaml && w=$(submit w.yaml) && wait_for 60 job_is "$w" reason Unsatisfiable &&
	all_gone
'

test_expect_success 'AC-NV-2: two replicas to one pod are refused, one of renamed ones is had by its name' '
	pod two "nvidia.com/gpu.shared: 2" >two.yaml && test_must_fail gpuq submit two.yaml 2>why && grep "several replicas may be the same device" why &&
	offers node-0004 "\"nvidia.com/gpu\": null, \"nvidia.com/gpu.shared\": \"16\"" "\"nvidia.com/gpu.replicas\": \"4\",
		\"nvidia.com/gpu.sharing-strategy\": \"mps\"" && wait_for 60 node_is node-0004 gpus 4 &&
	pod one "nvidia.com/gpu.shared: 1" >one.yaml && one=$(submit one.yaml) && job_becomes "$one" RUNNING && job_is "$one" pods.0.node node-0004 &&
	wait_for 60 node_is node-0004 free_gpus 3.75 && test "$(limits "$one")" = "{\"nvidia.com/gpu.shared\": \"1\"}" && all_gone
'

test_expect_success 'AC-NV-1: under the single strategy fifty-six slots are instances, and no whole device' '
	offers node-0005 "\"nvidia.com/gpu\": \"56\"" "\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb\",
		\"nvidia.com/mig.strategy\": \"single\", \"nvidia.com/gpu.count\": \"56\"" && wait_for 60 node_is node-0005 mig.0.count 56 &&
	node_is node-0005 mig.0.profile 1g.5gb &&
	m=$(fake_job hang=true --mig 1g.5gb) && job_becomes "$m" RUNNING && job_is "$m" pods.0.node node-0005 &&
	test "$(limits "$m")" = "{\"nvidia.com/gpu\": \"1\"}" && wait_for 60 node_is node-0005 mig.0.free 55 &&
	node_is node-0005 gpus 8 && node_is node-0005 mig.0.pods.0.job "$m" && job_is "$m" gpus 0.143 && adds_up && gpuq cancel "$m" &&
	echo "{command: [a], image: test, gpus: 8, nodes: [node-0005]}" >w.yaml && w=$(submit w.yaml) && wait_for 60 job_is "$w" reason Unsatisfiable
'

test_expect_success 'two cards that HAMi offers ten times each are two, and no job of gpuqd stands there' '
	api PATCH /nodes/node-0006 "{\"metadata\": {\"annotations\": {\"hami.io/node-nvidia-register\":
		\"[{\\\"id\\\":\\\"GPU-1\\\",\\\"count\\\":10,\\\"devmem\\\":15360,\\\"health\\\":true},{\\\"id\\\":\\\"GPU-2\\\",\\\"count\\\":10,\\\"devmem\\\":15360,\\\"health\\\":true}]\"}}}" >/dev/null &&
	offers node-0006 "\"nvidia.com/gpu\": \"20\"" && wait_for 60 node_is node-0006 gpus 2 && gpuq nodes --json | grep "\"name\":\"node-0006\"" | grep -q "\"gpuq.io/sharing\":\"hami\"" &&
	echo "{command: [a], image: test, gpus: 1, nodes: [node-0006]}" >w.yaml && w=$(submit w.yaml) && wait_for 60 job_is "$w" reason Unsatisfiable
'

test_expect_success 'devices without being told: the names of each maker' '
	for name in gpu.intel.com/i915 gpu.intel.com/xe habana.ai/gaudi google.com/tpu aws.amazon.com/neuron amd.com/gpu; do
		offers node-0007 "\"nvidia.com/gpu\": null, \"$name\": \"3\"" && wait_for 60 node_is node-0007 gpus 3 &&
		wait_for 60 node_is node-0007 devices.0.product $name && pod named "$name: 2" >d.yaml && d=$(submit d.yaml) &&
		job_becomes "$d" RUNNING && job_is "$d" gpus 2 && job_is "$d" pods.0.node node-0007 && test "$(limits "$d")" = "{\"$name\": \"2\"}" &&
		wait_for 60 node_is node-0007 free_gpus 1 && all_gone && offers node-0007 "\"$name\": null" || return 1
	done
'

test_expect_success 'a resource that a flavor names is a device: in nodes, quota, status and pods' '
	offers node-0007 "\"nvidia.com/gpu\": null, \"example.com/fpga\": \"3\"" && wait_for 60 eval "gpuq nodes --json | grep -q \"example.com/fpga\"" &&
	node_is node-0007 gpus 0 && cat >fpga.yaml <<-\END &&
	version: 1
	flavors: [{name: fpga, resource: example.com/fpga}]
	queues: [{name: default, limit: {fpga: 2}}]
	END
	gpuq apply -f fpga.yaml && wait_for 60 node_is node-0007 gpus 3 && node_is node-0007 flavor fpga &&
	pod one "example.com/fpga: 2" >f.yaml && f=$(submit f.yaml) && job_becomes "$f" RUNNING && job_is "$f" gpus 2 && job_is "$f" flavor fpga &&
	test "$(limits "$f")" = "{\"example.com/fpga\": \"2\"}" && wait_for 60 node_is node-0007 free_gpus 1 &&
	echo "{command: [a], image: test, gpus: 1, flavor: fpga}" >g.yaml && g=$(submit g.yaml) && wait_for 60 job_is "$g" reason LimitQueue && gpuq cancel "$f" &&
	job_becomes "$g" COMPLETED && all_gone && echo "{version: 1, queues: [{name: default, limit: unlimited}]}" | gpuq apply -f -
'

test_expect_success '--gres names what the site maps' '
	printf "#!/bin/sh\n#SBATCH --gres=nic:1\nsleep 1\n" >nic.sh && test_must_fail gpuq submit --image test nic.sh 2>why && grep "nic.sh:2:9: --gres: .*the site maps no gres" why &&
	echo "{version: 1, gres: {nic: rdma/hca}}" | gpuq apply -f - && g=$(submit --image test nic.sh) && wait_for 60 job_is "$g" state COMPLETED &&
	gpuq status "$g" -o yaml | grep "rdma/hca: 1" && test_must_fail gpuq submit --image test --gres=nik:1 nic.sh 2>why && grep "did you mean nic" why && ! grep "nic.sh:" why &&
	echo "{version: 1, gres: {nic: cpu}}" >bad.yaml && test_must_fail gpuq apply -f bad.yaml 2>why && grep "bad.yaml:1:.*gres.nic: expected a resource of nodes" why
'

test_expect_success 'a kubelet without the devices that its node offers: the ledger is corrected, jobs without devices run there' '
	i=0 && while [ $((i += 1)) -le 5 ]; do
		echo "{command: [a], image: test, gpus: $i, nodes: [node-0008], annotations: {gpuq.test/reject: \"true\"}}" >r.yaml && submit r.yaml >/dev/null || return 1
	done && wait_for 60 says gpuqd.log "node.short node=node-0008 resource=nvidia.com/gpu have=0" && wait_for 90 node_is node-0008 state suspect &&
	echo "{command: [a], image: test, nodes: [node-0008]}" >c.yaml && c=$(submit c.yaml) && job_becomes "$c" COMPLETED && job_is "$c" attempt 0 && all_gone
'

test_expect_success 'AC-NV-7: what nodes do not report is in the inventory of the site; the smaller number counts' '
	offers node-0009 "\"nvidia.com/gpu\": \"40\"" "\"nvidia.com/gpu.product\": null, \"nvidia.com/gpu.memory\": null, \"nvidia.com/gpu.count\": null" && wait_for 60 node_is node-0009 gpus 40 && cat >inventory.yaml <<-\END &&
	version: 1
	inventory:
	- {selector: {kubernetes.io/hostname: node-0009}, product: NVIDIA-T4, memory: 16Gi, cards: 6, replicas: 8}
	END
	gpuq apply -f inventory.yaml && wait_for 60 node_is node-0009 devices.0.product NVIDIA-T4 && node_is node-0009 gpus 5 &&
	node_is node-0009 devices.0.memory_mib 16384 && { gpuq doctor >out || true; } && grep "node-0009.*cards 6, of the node 5" out &&
	echo "{command: [a], image: test, gpus: 0.1, nodes: [node-0009], annotations: {gpuq.test/hang: \"true\"}}" >p.yaml && p=$(submit p.yaml) &&
	job_becomes "$p" RUNNING && test "$(limits "$p")" = "{\"nvidia.com/gpu\": \"1\"}" && wait_for 60 node_is node-0009 free_gpus 4.875 && all_gone
'

test_expect_success 'replicas_as_gpus: where the pool says so, each replica is a device' '
	echo "{command: [a], image: test, gpus: 2, nodes: [node-0009]}" >two.yaml && two=$(submit two.yaml) &&
	wait_for 60 job_is "$two" reason Unsatisfiable && gpuq cancel "$two" && two=$(fake_job run=300ms -g default:2 --nodelist node-0009) && wait_for 60 job_is "$two" reasons.0.object replicas &&
	echo "{version: 1, pools: [{name: r, selector: {kubernetes.io/hostname: node-0009}, replicas_as_gpus: true}]}" | gpuq apply -f - &&
	wait_for 60 node_is node-0009 gpus 40 && job_becomes "$two" COMPLETED && all_gone
'

test_expect_success 'words of a dialect are no resources' '
	echo "{command: [a], resources: {nvidia.com/gpumem: 1000}}" >d.yaml && test_must_fail gpuq submit d.yaml 2>why &&
	grep "d.yaml:1:.*nvidia.com/gpumem: belongs to one system that shares devices" why
'

test_expect_success 'names that pods cannot request are refused with the rule' '
	for name in requests.example.com/nic kubernetes.io/nic; do
		echo "{command: [a], image: test, resources: {$name: 1}}" >d.yaml && test_must_fail gpuq submit d.yaml 2>why && grep "resources.$name: expected .* resource" why &&
		pod named "$name: 1" >d.yaml && test_must_fail gpuq submit d.yaml 2>why && grep "limits.$name: expected .* resource" why || return 1
	done
'

no_harm_was_done

test_done
