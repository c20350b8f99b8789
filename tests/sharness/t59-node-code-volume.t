#!/bin/sh
test_description='a real node: code that no ConfigMap takes comes from a claim, of which a job sees only its own archive'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --no-kwok --real-node --real-gpus 4
XDG_CACHE_HOME=$PWD/cache && export XDG_CACHE_HOME

# fails WORDS: a job whose code is to come from the claim ends, and says why
fails() {
	bad=$(submit --code proj job.yaml) && job_becomes "$bad" FAILED 120 && gpuq status "$bad" >out && says out "$1"
}

test_expect_success 'a claim, gpuqd sees its directory; three megabytes of code' '
	mkdir -p volume/of/gpuq other proj && echo "not yours" >volume/of/gpuq/other && head -c 3000000 /dev/urandom >proj/weights && echo "print" >proj/train.py && bound_claim code "{}" "$PWD/volume" &&
	node_image docker.io/local/bare:1 --without sh --with "/bin/sh=$(readlink -f /bin/dash)" --without sha256sum &&
	printf "version: 1\ncode: {keep: 1s}\nqueues: [{name: default, quota: 4, image: \"docker.io/local/busybox:1\"}]\n" >site.yaml &&
	printf "finished_pod_keep: 20s\ncode_store: {to: %s, volume: {claim: code, sub_path: of/gpuq}}\n" "$PWD/volume/of/gpuq" >store.yaml &&
	printf "gpus: 1\ncommand: [sh, -c, \"sha256sum weights; ls -a; echo new >made; ls -d /gpuq-*; grep -c code-store /proc/mounts; echo init\"]\n" >job.yaml &&
	start_kube_gpuqd --site "$PWD/site.yaml" --config "$PWD/store.yaml" && wait_for 120 node_frees real1 4
'

test_expect_success 'the files are there, nothing else; the job does not see the volume' '
	id=$(submit --code proj job.yaml) && exits 0 gpuq wait "$id" && gpuq logs "$id" >out && says out "^$(sha256sum <proj/weights | cut -d" " -f1) " && says out "^train.py$" && ! grep "gpuq-code\." out &&
	test "$(grep ^/gpuq- out)" = /gpuq-code && says out "^0$"
'

test_expect_success 'the container that unpacks sees this archive and may not write' '
	printf "version: 1\ncode: {keep: 1s, image: docker.io/local/look:1}\n" >look.yaml && printf "#!/bin/busybox sh\nexport PATH=/bin\n{ ls /gpuq-code-store; echo x >/gpuq-code-store/new; } >/dev/termination-log 2>&1\nexit 3\n" >look && chmod +x look &&
	node_image docker.io/local/look:1 --without sh --with "/bin/sh=$PWD/look" && gpuq apply -f look.yaml && fails "site: archive.tgz.x0a/bin/sh: .*Read-only file system"
'

test_expect_success 'an image without what it takes is named; an array takes what is there already' '
	printf "version: 1\ncode: {keep: 1s, image: docker.io/local/bare:1}\n" >image.yaml && gpuq apply -f image.yaml && fails "there is no sha256sum in image docker.io/local/bare:1" &&
	printf "version: 1\ncode: {keep: 1s, image: docker.io/local/busybox:1}\n" >image.yaml && gpuq apply -f image.yaml &&
	b=$(submit --code proj -a 0-1 job.yaml) && job_becomes "${b}_0" COMPLETED 120 && job_becomes "${b}_1" COMPLETED 120
'

test_expect_success 'what is not there, or is not what was put, is not run' '
	c=$(submit --hold --code proj job.yaml) && archive=$(ls -d volume/of/gpuq/code-*)/archive.tgz && test -f "$archive" && cp proj/train.py other/x && rm -f "$archive" && cp other/x "$archive" && fails "what is on the volume of code_store has another digest" &&
	rm "$archive" && fails "it could not be read from the volume of code_store: .*No such file" && gpuq cancel "$c" && job_becomes "$c" CANCELLED
'

test_expect_success 'it goes with the jobs' '
	wait_for 120 eval "test -z \"\$(ls state/code)\"" && test "$(ls volume/of/gpuq)" = other && stop_gpuqd && nothing_was_overcommitted
'

test_done
