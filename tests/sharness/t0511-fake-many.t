#!/bin/sh
test_description='many pods at once on a fake cluster: those whose turn is later, and those told to leave'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

test_expect_success 'more pods than requests that can be under way all come to be' '
	start_fake --nodes 80 --gpus 8 && start_fake_gpuqd && id=$(fake_job hang=true -g 1 --array=0-599) &&
	wait_for 120 eval "test \$(n_pods $id) = 600" &&
	wait_for 60 eval "gpuq status --json | grep -q \"\\\"RUNNING\\\":600\""
'

test_expect_success 'all leave' '
	gpuq cancel "$id" >out && wait_for 90 eval "test \$(fake /fake/audit live) = 0" && wait_for 60 eval "test -z \"\$(gpuq queue -h)\""
'

# deletes POD: when it was told to leave, in us
deletes() {
	sed -n "s/^{\"t\":\([0-9]*\),\"verb\":\"delete\",.*\"name\":\"$1\".*/\1/p" audit
}

# Its end is heard at once, and its node has ten seconds to remove it; here a finalizer holds it.
test_expect_success 'who was told to leave is asked for again only when its node does not remove it' '
	id=$(fake_job hang=true -g 1) && job_becomes "$id" RUNNING && pod=$(job "$id" pods.0.name) &&
	pods=http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods &&
	/usr/bin/curl -sSf -X PATCH -H "Content-Type: application/merge-patch+json" -d "{\"metadata\":{\"finalizers\":[\"test.io/stay\"]}}" "$pods/$pod" >out &&
	gpuq requeue "$id" && wait_for 60 eval "test \$(deletes $pod | wc -l) = 2" &&
	test $(($(deletes "$pod" | tail -n 1) - $(deletes "$pod" | head -n 1))) -ge 9000000 &&
	job_becomes "$id" RUNNING && gpuq cancel "$id" &&
	/usr/bin/curl -sSf -X PATCH -H "Content-Type: application/merge-patch+json" -d "{\"metadata\":{\"finalizers\":null}}" "$pods/$pod" >out
'

# maps: how many scripts the cluster has
maps() {
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/default/configmaps" | grep -o 'name":"gpuq-[^"]*-script' | wc -l
}

test_expect_success 'the script of an array is taken away with the last of its pods, which may outlive its end' '
	stop_gpuqd && echo "finished_pod_keep: 2s" >gpuqd.yaml && start_fake_gpuqd --config "$PWD/gpuqd.yaml" && printf "#!/bin/sh\n#SBATCH --array=0-3\ntrue\n" >array.sh &&
	id=$(submit --image test --annotation gpuq.test/run=300ms array.sh) && wait_for 60 eval "test \$(n_pods $id) = 4" &&
	test "$(maps)" -gt 0 && exits 0 gpuq wait "$id" && wait_for 60 eval "test \$(maps) = 0"
'

no_harm_was_done
test_done
