#!/bin/sh
test_description='doctor names the systems that share devices: usable, not there, there and broken, and what to do'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# backend NAME STATE [TEXT]: doctor finds it so, in these words
backend() {
	{ gpuq doctor --json || :; } | grep '"check":"backend"' >found
	grep "\"backend\":\"$1\"" found | grep "\"state\":\"$2\"" | grep -e "${3-}" || { cat found; return 1; }
}

# broken NODE 'RESOURCES' 'LABELS' NAME TEXT ADVICE: a node that is so is found as a broken backend
broken() {
	offers "$1" "$2" "$3" && wait_for 60 backend "$4" broken "$5.*$1" && grep "\"backend\":\"$4\"" found | grep -q "\"result\":\"warning\"" &&
		grep "\"backend\":\"$4\"" found | grep -e "$6"
}

none='"nvidia.com/gpu": null'

test_expect_success 'backends of the nodes are usable, the others absent; nothing is asked for what is switched off' '
	start_fake --nodes 7 --gpus 2 && present="\"nvidia.com/gpu.product\": \"Tesla-T4\"" &&
	for i in 0 1 2 3 4 5 6; do offers node-000$i "\"nvidia.com/gpu\": \"2\"" "$present" || return 1; done &&
	start_fake_gpuqd && wait_for 60 node_is node-0000 devices.0.product Tesla-T4 && wait_for 60 backend "whole devices" usable "node-0000, node-0001, node-0002 and 4 more" &&
	for name in time-slicing mps mig gpushare gpu-manager hami "provisioning requests"; do backend "$name" absent || return 1; done &&
	backend kubeshare unserved "counted as foreign" && backend "kai fractions" unserved && backend dra absent "neither resource.k8s.io/v1 nor v1beta2" &&
	exits 0 gpuq doctor && says out "^ok +backend +gpushare: no node has it" &&
	/usr/bin/python3 "$test_source/tests/sharness/rpc.py" "$gpuqd_socket" cluster.rights "{}" >r.json && ! grep -q "pools that grow" r.json
'

test_expect_success 'replicas, instances, gpushare and gpu-manager as they should be' '
	offers node-0001 "\"nvidia.com/gpu\": \"4\"" "$present, \"nvidia.com/gpu.replicas\": \"2\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\"" &&
	offers node-0002 "\"nvidia.com/gpu\": \"4\"" "$present, \"nvidia.com/gpu.replicas\": \"2\", \"nvidia.com/gpu.sharing-strategy\": \"mps\", \"nvidia.com/mps.capable\": \"true\"" &&
	offers node-0003 "$none, \"nvidia.com/mig-1g.5gb\": \"7\"" "$present, \"nvidia.com/mig.strategy\": \"mixed\", \"nvidia.com/mig.config\": \"all-1g.5gb\"" &&
	offers node-0004 "$none, \"aliyun.com/gpu-mem\": \"30\", \"aliyun.com/gpu-count\": \"2\"" "$present, \"gpushare\": \"true\"" &&
	offers node-0005 "$none, \"tencent.com/vcuda-core\": \"200\", \"tencent.com/vcuda-memory\": \"120\"" "$present, \"nvidia-device-enable\": \"enable\"" &&
	wait_for 60 backend gpu-manager usable node-0005 && wait_for 60 backend gpushare usable node-0004 && backend mig usable node-0003 &&
	backend mps usable node-0002 && backend time-slicing usable node-0001 && exits 0 gpuq doctor && ! grep "^warning *backend" out
'

test_expect_success 'each fault is found, named with its node, and has a remedy' '
	broken node-0006 "$none" "$present" "whole devices" "no plugin offers them, and there is no RuntimeClass nvidia" "default runtime of containerd, or as RuntimeClass" &&
	broken node-0006 "\"nvidia.com/gpu\": \"2\"" "\"nvidia.com/gpu.product\": null" "whole devices" "not known" "GPU feature discovery, or describe" &&
	broken node-0002 "\"nvidia.com/gpu\": \"4\"" "\"nvidia.com/mps.capable\": null" mps "without label nvidia.com/mps.capable=true" "set the label" &&
	broken node-0003 "$none" "\"nvidia.com/mig.strategy\": \"none\"" mig "MIG strategy is none" "to mixed or single" &&
	broken node-0003 "$none" "\"nvidia.com/mig.config.state\": \"failed\"" mig "could not cut" "log of the MIG manager" &&
	broken node-0004 "$none" "\"gpushare\": null" gpushare "without label gpushare=true" "runs only where it is set" &&
	broken node-0004 "\"aliyun.com/gpu-mem\": null" "\"gpushare\": \"true\"" gpushare "no memory is offered" "plugin runs there" &&
	broken node-0005 "\"tencent.com/vcuda-memory\": null" "$present" gpu-manager "no cores with memory" "offers tencent.com/vcuda-core and vcuda-memory" &&
	broken node-0005 "$none" "\"nvidia-device-enable\": null, \"gpu\": \"on\"" hami "label gpu=on" "device plugin of HAMi"
'

test_expect_success 'rights of pools that grow are asked for where one does, and their fault is named' '
	cat >site.yaml <<-END && gpuq apply -f site.yaml &&
	version: 1
	pools: [{name: g, selector: {grows: g}, flavor: default, provisioning: {kind: request, class: c, max_nodes: 2, machine: {gpus: 1, labels: {grows: g}}}}]
	END
	/usr/bin/python3 "$test_source/tests/sharness/rpc.py" "$gpuqd_socket" cluster.rights "{}" >r.json && grep -q "pools that grow" r.json &&
	{ gpuq doctor --json >found || :; } && grep "\"backend\":\"provisioning requests\"" found | grep "\"state\":\"usable\"\|\"state\":\"broken\""
'

test_expect_success 'others than operators see the nodes, and what only the cluster can tell is not known' '
	stop_fake && { gpuq doctor --json >found || :; } && grep "\"backend\":\"dra\"" found | grep "\"state\":\"unknown\"" && kill_gpuqd
'

test_done
