#!/bin/sh
test_description='real control plane: what the apiserver would refuse is served, or refused at submission'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/dra.yaml" --nodes 1 --gpus 4

SQ=\'

# refused TEXT LINES
refused() {
	if fake_job "$2" >out 2>err; then
		echo "accepted: $2"
		return 1
	fi
	grep -F "$1" err || { cat err; return 1; }
}

test_expect_success 'huge pages beside devices, without CPUs or memory' '
	start_kube_gpuqd && kube patch nodes/node1/status "{\"status\": {\"capacity\": {\"hugepages-2Mi\": \"1Gi\"}, \"allocatable\": {\"hugepages-2Mi\": \"1Gi\"}}}" >/dev/null &&
	wait_for 60 eval "gpuq nodes --json | grep -q hugepages" &&
	j=$(fake_job "gpus: 1\nresources: {hugepages-2Mi: 4Mi}\n$(fate hang=true)") && job_becomes "$j" RUNNING &&
	gpuq cancel "$j"
'

test_expect_success 'huge pages are whole ones' '
	refused "resources.hugepages-2Mi: expected a multiple of 2Mi, such as 4Mi" "gpus: 1\nresources: {hugepages-2Mi: 3Mi}" && grep "^gpuq: -:4:" err &&
	refused "resources.hugepages-big: expected the size of a page in the name" "resources: {hugepages-big: 4Mi}"
'

test_expect_success 'claims and what they name are called as objects are' '
	for name in G_x n.x nX; do
		refused "claims[0].name: expected lower-case letters, digits and" "claims: [{name: $name, class: nic.example.com}]" || return 1
	done && refused "claims[0].class: expected lower-case letters, digits, ${SQ}.${SQ} and" "claims: [{name: g, class: Not Ok}]" &&
	refused "claims[0].claim: expected" "claims: [{name: g, claim: No_such}]" && refused "claims[0].template: expected" "claims: [{name: g, template: t/u}]" &&
	refused "claims[0].first[0].class: expected" "claims: [{name: g, first: [{class: H_100}, {class: a100}]}]" &&
	refused "ResourceClaim nic does not exist: beside devices of a plugin it is to be there" "gpus: 1\nclaims: [{name: n, claim: nic}]"
'

test_expect_success 'no node or device is given twice' 'nothing_was_overcommitted'

test_done
