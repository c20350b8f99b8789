#!/bin/sh
test_description='MIG instances that are offered in replicas: one instance is one instance'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

mixed="\"nvidia.com/mig.strategy\": \"mixed\", \"nvidia.com/mig-1g.10gb.sharing-strategy\": \"time-slicing\""

# refused KEYS TEXT
refused() {
	echo "{name: x, command: [a], image: i, $1}" >bad.yaml && exits 1 gpuq submit --dry-run bad.yaml && says err "$2"
}

node_shows() { # NODE TEXT
	gpuq nodes -o NODE,MIG >nodes.out && grep "^$1 .*$2" nodes.out
}

test_expect_success 'a card of seven instances, each in four replicas of a name of their own: it is one card' '
	start_fake --nodes 2 --gpus 4 &&
	offers node-0000 "\"nvidia.com/gpu\": null, \"nvidia.com/mig-1g.10gb\": \"0\", \"nvidia.com/mig-1g.10gb.shared\": \"28\"" "$mixed, \"nvidia.com/mig-1g.10gb.replicas\": \"4\", \"nvidia.com/mig-1g.10gb.memory\": \"9984\"" &&
	offers node-0001 "\"nvidia.com/gpu\": null" && start_fake_gpuqd && wait_for 60 node_is node-0000 mig.0.count 28 && node_is node-0000 mig.0.profile 1g.10gb.shared && node_is node-0000 mig.0.replicas 4 &&
	node_is node-0000 mig.0.milli 35 && node_is node-0000 gpus 1 && node_is node-0000 free_gpus 1 && node_is node-0000 devices.0.free_milli 1000 && node_is node-0000 devices.0.isolation time-slice &&
	node_is node-0000 devices.0.parts.27.memory_mib 2560 && gpuq status --json >status.out && test "$(json gpus <status.out)" = 1 && test "$(json devices.free <status.out)" = 1 && node_shows node-0000 "1g.10gb.shared 28/28"
'

test_expect_success 'quotas are compared with that card' '
	quota() { echo "{version: 1, queues: [{name: q, quota: $1}]}" | gpuq apply --dry-run -f - >out 2>&1; } && quota 2 && grep "add up to 2 default: the cluster has 1$" out && quota 1 && ! grep "add up to" out
'

test_expect_success 'twenty-eight jobs have one each and are charged that, no kubelet refuses one, the next waits' '
	echo "{command: [a], image: test, mig: 1g.10gb.shared, array: 0-28, annotations: {gpuq.test/hang: \"true\"}}" >j.yaml && j=$(submit j.yaml) && job_becomes "${j}_27" RUNNING && job_is "${j}_0" gpus 0.035 &&
	job_is "${j}_0" isolation time-slice && job_is "${j}_0" pods.0.mig 1g.10gb.shared && test "$(limits "$j")" = "{\"nvidia.com/mig-1g.10gb.shared\": \"1\"}" && wait_for 60 node_is node-0000 mig.0.free 0 &&
	node_is node-0000 free_gpus 0 && test "$(gpuq status --json | json devices.allocated)" = 1 && gpuq queues --json >queues.out && grep -q "\"nvidia.com/mig-1g.10gb.shared\":28[,}]" queues.out &&
	wait_for 60 job_is "${j}_28" reason Resources && gpuq why "$j" >why.out && grep "Reason *Resources 1g.10gb.shared: have 0, need 1" why.out && test "$(fake /fake/audit overcommits)" = 0 &&
	! grep UnexpectedAdmissionError gpuqd.log && gpuq status "${j}_0" >one.out && grep "1 x mig 1g.10gb.shared" one.out
'

test_expect_success '... as a restart finds it, and as a scenario has it' '
	kill_gpuqd && start_fake_gpuqd && wait_for 60 node_is node-0000 mig.0.free 0 && job_is "${j}_27" pods.0.mig 1g.10gb.shared && job_is "${j}_27" gpus 0.035 && test "$(fake /fake/audit overcommits)" = 0 &&
	gpuq export --scenario >now.yaml && "$test_build/gpuqd/gpuq-sim" run now.yaml >now.out && cat now.out && test "$(grep -c "running .*node-0000\[1g.10gb.shared" now.out)" = 28 && grep "pending .*Resources 1g.10gb.shared" now.out && all_gone &&
	gpuq report --json >report.out && grep "nvidia.com/mig-1g.10gb.shared" report.out
'

test_expect_success 'a limit of one instance holds its four replicas' '
	echo "{version: 1, queues: [{name: small, limit: {default: 0.143}}]}" | gpuq apply -f - && echo "{command: [a], image: test, queue: small, mig: 1g.10gb.shared, array: 0-4, annotations: {gpuq.test/hang: \"true\"}}" >s.yaml &&
	s=$(submit s.yaml) && job_becomes "${s}_3" RUNNING && wait_for 60 job_is "${s}_4" reason LimitQueue && all_gone
'

test_expect_success 'a whole instance is none of them, nor is there isolation in hardware; two replicas to one pod are refused' '
	echo "{command: [a], image: test, mig: 1g.10gb}" >w.yaml && w=$(submit w.yaml 2>warned) && wait_for 60 job_is "$w" reason Unsatisfiable && gpuq cancel "$w" &&
	refused "mig: 1g.10gb.shared, gpus: 2" "bad.yaml:1:[0-9]*: gpus: expected 1 of 1g.10gb.shared, not 2: several replicas may be of the same instance" && refused "mig: 1g.10gb.shared/4" "expected a MIG profile" &&
	pod p "nvidia.com/mig-1g.10gb.shared: 2" >p.yaml && exits 1 gpuq submit p.yaml && says err "expected 1: several replicas may be of the same instance" &&
	refused "mig: 1g.10gb.shared, isolation: mig" "a replica of a MIG instance has at most time-slice: request a MIG instance" && refused "mig: [1g.10gb, 2g.20gb.shared], gpus: 2" "expected 1 of 2g.20gb.shared"
'

test_expect_success 'memory of a part, where instances will do, has a replica that holds it; a demand of isolation has none' '
	echo "{command: [a], image: test, gpu_memory: 2Gi, mig_ok: true, annotations: {gpuq.test/hang: \"true\"}}" >m.yaml && m=$(submit m.yaml) && job_becomes "$m" RUNNING && job_is "$m" pods.0.mig 1g.10gb.shared && all_gone &&
	echo "{command: [a], image: test, gpu_memory: 3Gi, mig_ok: true}" >m.yaml && m=$(submit m.yaml 2>/dev/null) && wait_for 60 job_is "$m" reason Unsatisfiable && gpuq cancel "$m" &&
	echo "{command: [a], image: test, gpu_memory: 2Gi, mig_ok: true, isolation: mig}" >m.yaml && m=$(submit m.yaml 2>/dev/null) && wait_for 60 job_is "$m" reason Unsatisfiable && gpuq cancel "$m"
'

test_expect_success 'replicas that kept the name of the instance: job files and manifests have them by it, those of others count' '
	offers node-0000 "\"nvidia.com/mig-1g.10gb\": \"14\", \"nvidia.com/mig-1g.10gb.shared\": \"0\"" "\"nvidia.com/mig-1g.10gb.replicas\": \"2\", \"nvidia.com/mig-1g.10gb.product\": \"NVIDIA-H100-MIG-1g.10gb-SHARED\"" &&
	wait_for 60 node_is node-0000 mig.0.replicas 2 && node_is node-0000 mig.0.count 14 && node_is node-0000 gpus 1 && theirs a node-0000 "\"nvidia.com/mig-1g.10gb\": \"2\"" && wait_for 60 node_is node-0000 mig.0.foreign 2 &&
	node_is node-0000 mig.0.free 12 && pod p "nvidia.com/mig-1g.10gb.shared: 1" >p.yaml && p=$(submit p.yaml) && job_becomes "$p" RUNNING && test "$(limits "$p")" = "{\"nvidia.com/mig-1g.10gb\": \"1\"}" &&
	job_is "$p" gpus 0.071 && k=$(submit j.yaml) && job_becomes "${k}_10" RUNNING && wait_for 60 job_is "${k}_28" reason Resources && test "$(limits "$k")" = "{\"nvidia.com/mig-1g.10gb\": \"1\"}" &&
	test "$(fake /fake/audit overcommits)" = 0 && w=$(submit w.yaml 2>/dev/null) && wait_for 60 job_is "$w" reason Unsatisfiable && all_gone && api DELETE /namespaces/default/pods/a >/dev/null
'

test_expect_success 'nodes of several numbers of replicas: a job has one of either, the lesser part first' '
	offers node-0001 "\"nvidia.com/mig-1g.10gb.shared\": \"28\"" "$mixed, \"nvidia.com/mig-1g.10gb.replicas\": \"4\"" && wait_for 60 node_is node-0001 mig.0.count 28 &&
	k=$(submit p.yaml) && job_becomes "$k" RUNNING && job_is "$k" pods.0.node node-0001 && job_is "$k" gpus 0.035 && test "$(limits "$k")" = "{\"nvidia.com/mig-1g.10gb.shared\": \"1\"}" &&
	gpuq drain node-0001 >/dev/null && k=$(submit p.yaml) && job_becomes "$k" RUNNING && job_is "$k" pods.0.node node-0000 && job_is "$k" gpus 0.071 && gpuq resume node-0001 >/dev/null && all_gone
'

test_expect_success 'a number of replicas that changes: those that run hold one each' '
	gpuq drain node-0000 >/dev/null && echo "{command: [a], image: test, mig: 1g.10gb.shared, array: 0-3, annotations: {gpuq.test/hang: \"true\"}}" >f.yaml && k=$(submit f.yaml) && job_becomes "${k}_3" RUNNING &&
	offers node-0001 "\"nvidia.com/mig-1g.10gb.shared\": \"14\"" "\"nvidia.com/mig-1g.10gb.replicas\": \"2\"" && wait_for 60 node_is node-0001 mig.0.replicas 2 && wait_for 60 node_is node-0001 mig.0.free 10 &&
	o=$(submit j.yaml) && job_becomes "${o}_9" RUNNING && wait_for 60 node_is node-0001 mig.0.free 0 && job_is "${o}_10" state PENDING && test "$(fake /fake/audit overcommits)" = 0 &&
	job_is "${k}_0" gpus 0.035 && job_is "${o}_0" gpus 0.071 && all_gone && gpuq resume node-0000 >/dev/null
'

test_expect_success 'the single strategy: the replicas have the name of whole devices' '
	offers node-0001 "\"nvidia.com/mig-1g.10gb.shared\": null, \"nvidia.com/gpu\": \"28\"" "\"nvidia.com/mig.strategy\": \"single\", \"nvidia.com/gpu.product\": \"NVIDIA-H100-MIG-1g.10gb-SHARED\",
		\"nvidia.com/gpu.memory\": \"9984\", \"nvidia.com/gpu.count\": \"7\", \"nvidia.com/gpu.replicas\": \"4\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\"" &&
	wait_for 60 node_is node-0001 mig.0.count 28 && wait_for 60 node_is node-0001 mig.0.profile 1g.10gb.shared && node_is node-0001 gpus 1 && gpuq drain node-0000 >/dev/null && theirs b node-0001 "\"nvidia.com/gpu\": \"3\"" &&
	wait_for 60 node_is node-0001 mig.0.free 25 && node_is node-0001 mig.0.foreign 3 && k=$(submit p.yaml) && job_becomes "$k" RUNNING && test "$(limits "$k")" = "{\"nvidia.com/gpu\": \"1\"}" && job_is "$k" isolation time-slice &&
	k=$(submit j.yaml) && job_becomes "${k}_23" RUNNING && wait_for 60 job_is "${k}_28" reason Resources && test "$(fake /fake/audit overcommits)" = 0 && w=$(submit w.yaml 2>/dev/null) && wait_for 60 job_is "$w" state PENDING && all_gone
'

test_expect_success 'replicas of which nobody tells how many they are to an instance: none is used, and the node says so' '
	offers node-0001 "" "\"nvidia.com/gpu.replicas\": null" && wait_for 60 node_is node-0001 mig.0.count 0 && gpuq nodes -o NODE,NOTE >nodes.out && grep "node-0001.*MIG instances are shared, and no label tells in how many replicas" nodes.out &&
	k=$(submit p.yaml 2>/dev/null) && wait_for 60 job_is "$k" state PENDING && all_gone
'

no_harm_was_done

test_done
