#!/bin/sh
test_description='parts of devices on a node with the gpushare plugin: who gets which, what its pod is told'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

begin() {
	start_fake --nodes 1 --gpus 0
}

daemon() {
	start_fake_gpuqd
}

first=node-0000 pods=/namespaces/default/pods
. "$test_source/tests/sharness/gpushare.sh"

test_done
