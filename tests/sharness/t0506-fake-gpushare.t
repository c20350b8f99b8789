#!/bin/sh
test_description='parts of devices on a node with the gpushare plugin: who gets which, what its pod is told'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

api() { # METHOD PATH [BODY]
	/usr/bin/curl -sSf -X "$1" -H "Content-Type: application/merge-patch+json" ${3:+--data-binary "$3"} "http://127.0.0.1:$fake_port/api/v1$2"
}

begin() {
	start_fake --nodes 1 --gpus 0
}

daemon() {
	start_fake_gpuqd
}

first=node-0000 pods=/namespaces/default/pods
. "$test_source/tests/sharness/gpushare.sh"

test_done
