#!/bin/sh
test_description='MIG instances are never whole devices, by whatever name a manifest or the node has them; labels that contradict one another'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

note_is() { # NODE TEXT
	gpuq nodes -o NODE,NOTE >nodes.out && grep "^$1 .*$2" nodes.out
}

whole_pends() { # NODE
	w=$(echo "{command: [a], image: test, gpus: 1, nodes: [$1]}" | gpuq submit --parsable - 2>/dev/null) && wait_for 60 job_is "$w" reason Unsatisfiable && gpuq cancel "$w"
}

# doctor_names NODE BACKEND: it is among those where the backend is usable
doctor_names() {
	{ gpuq doctor || true; } >doctor.out && grep -q "$2: usable on .*$1" doctor.out
}

small="\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb\", \"nvidia.com/gpu.count\": \"7\", \"nvidia.com/gpu.memory\": \"4864\""

test_expect_success 'manifests that request an instance by its profile have it on a node of the single strategy by the name that it has there' '
	start_fake --nodes 4 --gpus 4 && offers node-0000 "\"nvidia.com/gpu\": \"32\"" "\"nvidia.com/mig.strategy\": \"single\", \"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-80GB-MIG-1g.20gb\", \"nvidia.com/gpu.count\": \"32\"" &&
	offers node-0001 "\"nvidia.com/gpu\": \"7\"" "$small, \"nvidia.com/mig.strategy\": null" && offers node-0002 "\"nvidia.com/gpu\": \"7\"" "$small, \"nvidia.com/mig.strategy\": \"mixed\"" &&
	offers node-0003 "" "\"nvidia.com/mig.strategy\": \"none\", \"nvidia.com/mig.config\": \"all-1g.5gb\", \"nvidia.com/mig.config.state\": \"success\"" &&
	start_fake_gpuqd && wait_for 60 node_is node-0000 mig.0.count 32 && pod p "nvidia.com/mig-1g.20gb: 1" >p.yaml && p=$(submit p.yaml) && job_becomes "$p" RUNNING && job_is "$p" gpus 0.143 &&
	test "$(limits "$p")" = "{\"nvidia.com/gpu\": \"1\"}" && wait_for 60 node_is node-0000 mig.0.free 31 && test "$(fake /fake/audit overcommits)" = 0
'

test_expect_success '... batch Jobs with a requests beside the limits too, and no container is without the device' '
	cat >b.yaml <<-END &&
	{apiVersion: batch/v1, kind: Job, metadata: {name: b}, spec: {template: {metadata: {annotations: {gpuq.test/hang: "true"}}, spec: {nodeSelector: {nvidia.com/mig.strategy: single}, restartPolicy: Never,
	 containers: [{name: a, image: test, command: [a]}, {name: c, image: test, command: [a], resources: {limits: {nvidia.com/mig-1g.20gb: 2}, requests: {nvidia.com/mig-1g.20gb: 2}}}]}}}}
	END
	b=$(submit b.yaml) && job_becomes "$b" RUNNING && api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$b" >pod.json && test "$(json items.0.spec.containers.1.resources.limits <pod.json)" = "{\"nvidia.com/gpu\": \"2\"}" &&
	test "$(json items.0.spec.containers.1.resources.requests <pod.json)" = "{\"nvidia.com/gpu\": \"2\"}" && ! grep mig- pod.json && all_gone
'

test_expect_success 'a job of whole devices says which object it lacks there' '
	w=$(echo "{command: [a], image: test, gpus: 1, nodes: [node-0000]}" | gpuq submit --parsable - 2>/dev/null) && wait_for 60 job_is "$w" reason Unsatisfiable && gpuq why "$w" >why.out &&
	says why.out "Reason  *Unsatisfiable gpus: have 0, need 1" && gpuq status "$w" >status.out && says status.out "Unsatisfiable gpus: have 0, need 1" && gpuq cancel "$w"
'

test_expect_success 'a product of instances without a strategy is the single one' '
	node_is node-0001 mig.0.count 7 && node_is node-0001 mig.0.profile 1g.5gb && node_is node-0001 gpus 1 && whole_pends node-0001 && doctor_names node-0001 mig && ! doctor_names node-0001 "whole devices" &&
	pod p "nvidia.com/mig-1g.5gb: 1" >p.yaml && p=$(submit p.yaml) && job_becomes "$p" RUNNING && job_is "$p" pods.0.node node-0001 && test "$(limits "$p")" = "{\"nvidia.com/gpu\": \"1\"}" && job_is "$p" isolation mig && all_gone
'

test_expect_success 'with the mixed strategy it is a contradiction: the devices are left alone, other instances are not' '
	node_is node-0002 gpus 0 && note_is node-0002 "names MIG instances, and nvidia.com/mig.strategy=mixed does not offer them as nvidia.com/gpu: none is used" && whole_pends node-0002 &&
	offers node-0002 "\"nvidia.com/mig-2g.10gb\": \"3\"" && wait_for 60 node_is node-0002 mig.0.count 3 && node_is node-0002 gpus 1 && note_is node-0002 "names MIG instances" && whole_pends node-0002 &&
	echo "{command: [a], image: test, mig: 2g.10gb, annotations: {gpuq.test/hang: \"true\"}}" >m.yaml && m=$(submit m.yaml) && job_becomes "$m" RUNNING && all_gone &&
	! doctor_names node-0002 "whole devices"
'

test_expect_success 'cards that are cut while the strategy is none are left alone' '
	node_is node-0003 gpus 0 && note_is node-0003 "its cards are cut (nvidia.com/mig.config=all-1g.5gb), and nvidia.com/mig.strategy is none: none is used" && whole_pends node-0003 && ! doctor_names node-0003 "whole devices" &&
	says doctor.out "mig: cards are cut, and the plugin.s MIG strategy is none: node-0003" && offers node-0003 "" "\"nvidia.com/mig.config\": \"all-disabled\"" && wait_for 60 node_is node-0003 gpus 4
'

test_expect_success 'no site makes whole devices of either' '
	echo "{version: 1, inventory: [{selector: {kubernetes.io/hostname: node-0002}, cards: 2, replicas: 3}], pools: [{name: r, selector: {kubernetes.io/hostname: node-0002}, replicas_as_gpus: true}]}" >site.yaml &&
	offers node-0002 "\"nvidia.com/mig-2g.10gb\": null" && gpuq apply -f site.yaml >/dev/null && wait_for 60 node_is node-0002 pool r && wait_for 60 node_is node-0002 gpus 0 && whole_pends node-0002
'

test_done
