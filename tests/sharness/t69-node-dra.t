#!/bin/sh
test_description='a real node whose devices are objects: the kubelet has its driver prepare what gpuqd allocates'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

# The device plugin has no devices: those of the driver are the node's.
cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/dra.yaml" --no-kwok --real-node --real-gpus 0 --real-dra 4

# claiming 'COMMANDS' N [OPTION]: a job of these shell commands with a claim of N devices
claiming() {
	/usr/bin/python3 - "$@" <<-\END >claiming.yaml
	import json, sys
	print('image: docker.io/local/busybox:1\ncommand: %s\nclaims: [{name: g, class: gpu.example.com, count: %s}]' % (json.dumps(["/bin/sh", "-c", sys.argv[1]]), sys.argv[2]))
	END
	submit claiming.yaml
}

# prepared: the devices of each claim that the driver has prepared, a line each, sorted
prepared() {
	cat "$TMPDIR"/k/real/prepared/* 2>/dev/null | cut -d" " -f2- | sort
}

prepared_are() {
	prepared_got=$(prepared)
	[ "$prepared_got" = "$1" ] || { echo "prepared are ${prepared_got:-none}, not $1"; tail -n 5 "$TMPDIR/k/log/dradriver.log"; return 1; }
}

test_expect_success 'the driver publishes its devices, and they are those of the node' '
	kube apply -f - >/dev/null <<-\END &&
	apiVersion: resource.k8s.io/v1
	kind: DeviceClass
	metadata: {name: gpu.example.com}
	spec: {selectors: [{cel: {expression: "device.driver == \x27gpu.example.com\x27"}}]}
	END
	start_kube_gpuqd && wait_for 120 node_frees real1 4
'

test_expect_success 'a container starts once the driver has prepared the devices that gpuqd allocated' '
	one=$(claiming "sleep 600" 3) && job_becomes "$one" RUNNING 240 && prepared_are "gpu-0 gpu-1 gpu-2" && node_frees real1 1
'

test_expect_success 'another job gets the device that is left; a third waits, and gets those of the first' '
	two=$(claiming "sleep 600" 1) && job_becomes "$two" RUNNING 240 && prepared_are "$(printf "gpu-0 gpu-1 gpu-2\ngpu-3")" &&
	three=$(claiming "echo ran" 2) && wait_for 60 job_is "$three" reason Resources && gpuq cancel "$one" && job_becomes "$three" COMPLETED 240 &&
	gpuq logs "$three" >out && says out "^ran$" && wait_for 120 prepared_are gpu-3
'

test_expect_success 'nothing stays prepared, claimed or allocated' '
	gpuq cancel "$two" && wait_for 120 prepared_are "" && wait_for 120 no_claims && wait_for 60 node_frees real1 4
'

test_expect_success 'without its driver no container starts; it does when the driver is back' '
	cluster stop-server dradriver && four=$(claiming "echo late" 1) && sleep 8 && prepared_are "" && test_must_fail job_is "$four" state RUNNING && test_must_fail job_is "$four" state COMPLETED &&
	cluster start-server dradriver && job_becomes "$four" COMPLETED 240 && wait_for 120 no_claims
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
