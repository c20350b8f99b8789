#!/bin/sh
test_description='MIG instances: what a node has of them, who gets them, what others took'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

begin() {
	start_fake && daemon
}

daemon() {
	start_fake_gpuqd
}

first=node-0000 pods=/namespaces/default/pods
. "$test_source/tests/sharness/instances.sh"

test_done
