#!/bin/sh
test_description='jobs on a real apiserver, from manifests as they are'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube-shared.sh"

test_expect_success 'start, with the site of the sample jobs' '
	make_namespace &&
	make_nodes t4 gpus=1 product=Tesla-T4 label=cloud.google.com/gke-nodepool=dws-t4-nodepool \
		taint=nvidia.com/gpu=present:NoSchedule &&
	make_nodes a100 gpus=1 label=cloud.google.com/gke-nodepool=dws-a100-nodepool \
		taint=nvidia.com/gpu=present:NoSchedule &&
	make_nodes big gpus=8 &&
	start_kube_gpuqd --site "$test_source/examples/site-dws.yaml" &&
	wait_for 30 eval "test \$(gpuq nodes --json | wc -l) -ge 3" && gpuq nodes
'

for kind in t4 a100; do
	test_expect_success "the sample job for $kind runs to its end on its node" '
		id=$(submit "$test_source/examples/seeds/dws-$kind.yaml") && exits 0 gpuq wait "$id" &&
		last_result COMPLETED 0 && job_is "$id" queue dws-local-queue &&
		job_is "$id" pods.0.node "$test_namespace-$kind" &&
		gpuq status "$id" >out && says out "$test_namespace-$kind"
	'
done

test_expect_success 'its pod carries our labels and what its owner wrote' '
	cluster_id=$(job "$id" pods.0.name | cut -d- -f2) &&
	kube get "default/pods/$(job "$id" pods.0.name)" >pod.json &&
	/usr/bin/python3 - pod.json "$id" "$cluster_id" "$test_namespace-a100" <<-\END
	import json, sys
	pod = json.load(open(sys.argv[1]))
	job, cluster, node = sys.argv[2:]
	labels, spec = pod["metadata"]["labels"], pod["spec"]
	assert labels["gpuq.io/job"] == job and labels["gpuq.io/attempt"] == "0", labels
	assert labels["gpuq.io/index"] == "0" and labels["gpuq.io/cluster"] == cluster, labels
	assert spec["nodeName"] == node and spec["restartPolicy"] == "Never", spec
	assert spec["nodeSelector"] == {"cloud.google.com/gke-nodepool": "dws-a100-nodepool"}, spec
	assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"], spec
	(c,) = spec["containers"]
	assert c["args"] == ["120s"] and c["image"] == "gcr.io/k8s-staging-perf-tests/sleep:v0.0.3", c
	assert c["resources"]["limits"] == {"cpu": "100m", "memory": "100Mi", "nvidia.com/gpu": "1"}, c
	END
'

test_expect_success 'another namespace than that of the queue is refused by name' '
	sed "s/namespace: default/namespace: kube-system/" "$test_source/examples/seeds/dws-t4.yaml" >job.yaml &&
	exits 1 gpuq submit job.yaml && says err "kube-system" && says err "default"
'

test_expect_success 'the code of a container that fails' '
	id=$(pod_job fails 1 gpuq.test/run=0s gpuq.test/exit-code=3) && exits 3 gpuq wait "$id" && last_result FAILED 3
'

test_expect_success 'out of memory is told from failure' '
	id=$(pod_job oom 1 gpuq.test/run=0s gpuq.test/oom=true) && exits 137 gpuq wait "$id" && job_is "$id" state OUT_OF_MEMORY
'

test_expect_success 'a running pod is cancelled' '
	id=$(pod_job hangs 1 gpuq.test/hang=true gpuq.test/slow-exit=500ms) && job_becomes "$id" RUNNING &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED && wait_for 30 eval "test \$(n_pods_of $id) = 0"
'

test_expect_success 'a job over its time is ended' '
	cat >slow.json <<-\END &&
	{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "slow"},
	 "spec": {"activeDeadlineSeconds": 2, "backoffLimit": 0, "template": {"metadata": {"annotations": {"gpuq.test/hang": "true"}},
	  "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "docker.io/local/busybox:1"}]}}}}
	END
	id=$(submit slow.json) && exits 251 gpuq wait "$id" && job_is "$id" state TIMEOUT
'

test_expect_success 'a gang starts together, its pods know each other by name' '
	cat >gang.json <<-\END &&
	{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "gang"},
	 "spec": {"parallelism": 3, "completions": 3, "backoffLimit": 0, "template": {
	  "metadata": {"annotations": {"gpuq.test/run": "2s"}},
	  "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "docker.io/local/busybox:1",
	   "resources": {"limits": {"nvidia.com/gpu": 2}}}]}}}}
	END
	id=$(submit gang.json) && job_becomes "$id" RUNNING && test "$(n_pods_of "$id")" = 3 &&
	test "$(pods_of "$id" spec.subdomain | sort -u | wc -l)" = 1 &&
	kube list "$test_namespace/services" spec.clusterIP >services && says services "^None$" &&
	exits 0 gpuq wait "$id" && job_is "$id" gpus 6
'

test_expect_success 'more completions than parallelism: so many at once, each once' '
	cat >many.json <<-\END &&
	{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "many"},
	 "spec": {"parallelism": 2, "completions": 6, "backoffLimit": 0, "template": {
	  "metadata": {"annotations": {"gpuq.test/run": "300ms"}},
	  "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "docker.io/local/busybox:1",
	   "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}}}
	END
	id=$(submit many.json) && exits 0 gpuq wait "$id" && test "$(n_pods_of "$id")" = 6 &&
	test "$(pods_of "$id" metadata.labels | grep -o "array-index[^,}]*" | sort -u | wc -l)" = 6
'

test_expect_success 'a script travels as a ConfigMap' '
	printf "#!/bin/sh\n#GPUQ --image=docker.io/local/busybox:1 --gpus=1\necho the script itself\n" >job.sh &&
	id=$(submit job.sh) && exits 0 gpuq wait "$id" &&
	kube list "$test_namespace/configmaps" data >maps && says maps "the script itself" &&
	kube list "$test_namespace/configmaps" immutable >maps && says maps "[Tt]rue"
'

test_expect_success 'a job without an image is refused' '
	echo "command: [\"true\"]" >job.yaml && exits 1 gpuq submit job.yaml && says err "image"
'

test_expect_success 'retry: as often as backoffLimit says' '
	cat >retry.json <<-\END &&
	{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "again"},
	 "spec": {"backoffLimit": 2, "template": {
	  "metadata": {"annotations": {"gpuq.test/run": "0s", "gpuq.test/exit-code": "9"}},
	  "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "docker.io/local/busybox:1"}]}}}}
	END
	id=$(submit retry.json) && exits 9 gpuq wait "$id" && job_is "$id" attempt 2
'

test_expect_success 'end' '
	stop_gpuqd
'

test_done
