#!/bin/sh
test_description='a real node: code that no ConfigMap takes is fetched from an object store; an image that cannot says so'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/s3.sh"

cluster_for_gpuqd --no-kwok --real-node --real-gpus 4
XDG_CACHE_HOME=$PWD/cache && export XDG_CACHE_HOME

# fails IMAGE WORDS: a job whose code is to be fetched in it ends, and says why
fails() {
	printf "version: 1\ncode: {keep: 1s, image: docker.io/local/%s}\n" "$1" >image.yaml && gpuq apply -f image.yaml && bad=$(submit --code proj job.yaml) && job_becomes "$bad" FAILED 120 &&
	gpuq status "$bad" >out && says out "$2"
}

test_expect_success 'a store in the network of the node, images that can fetch and that cannot, three megabytes of code' '
	start_store "$(node_address)" nsenter -t "$(cut -d" " -f1 "$TMPDIR/k/run/node.pid")" -n && mkdir proj && head -c 3000000 /dev/urandom >proj/weights && echo "print" >proj/train.py &&
	node_image docker.io/local/curl:1 --with "$(command -v curl)" && set -- --without sh --with "/bin/sh=$(readlink -f /bin/dash)" &&
	node_image docker.io/local/bare:1 "$@" --without wget && node_image docker.io/local/plain:1 "$@" --without sha256sum &&
	printf "version: 1\ncode: {keep: 1s, image: docker.io/local/curl:1}\nqueues: [{name: default, quota: 4, image: \"docker.io/local/busybox:1\"}]\n" >site.yaml &&
	printf "[default]\naws_access_key_id = key\naws_secret_access_key = secret\n" >credentials && chmod 600 credentials &&
	printf "finished_pod_keep: 20s\ncode_store: {to: %s, s3: {region: eu-test-1, ca: %s, credentials: %s}}\n" "$url" "$PWD/tls.pem" "$PWD/credentials" >store.yaml &&
	printf "gpus: 1\ncommand: [sh, -c, \"sha256sum weights; ls -a; echo new >made; env\"]\n" >job.yaml &&
	start_kube_gpuqd --site "$PWD/site.yaml" --config "$PWD/store.yaml" && wait_for 120 node_frees real1 4
'

test_expect_success 'the files are there, nothing else, and no address or key is in the environment of the job' '
	id=$(submit --code proj job.yaml) && exits 0 gpuq wait "$id" && gpuq logs "$id" >out && says out "^$(sha256sum <proj/weights | cut -d" " -f1) " && says out "^train.py$" && ! grep -q "gpuq-code\.\|X-Amz\|secret" out
'

test_expect_success 'an array fetches what is there already' '
	n=$(grep -c ^PUT store/log) && b=$(submit --code proj -a 0-1 job.yaml) && job_becomes "${b}_0" COMPLETED 120 && job_becomes "${b}_1" COMPLETED 120 && test "$(grep -c ^PUT store/log)" = "$n"
'

test_expect_success 'an image without what fetching takes is named, with what it lacks' '
	fails bare:1 "there is no curl, python3 or wget in image docker.io/local/bare:1" && fails plain:1 "there is no sha256sum in image docker.io/local/plain:1"
'

test_expect_success 'what is not there, or is not what was put, is not run' '
	find store/objects -type f -exec cp proj/train.py {} \; && fails curl:1 "what was fetched has another digest" && rm store/objects/* && fails curl:1 "could not be fetched by curl.*404" &&
	gpuq status "$bad" >out && ! grep -q X-Amz out
'

test_expect_success 'it goes with the jobs' '
	wait_for 120 eval "test -z \"\$(ls state/code)\"" && stop_gpuqd && nothing_was_overcommitted
'

test_done
