#!/bin/sh
test_description='real control plane: gangs, scripts, arrays, quotas, retries, limits, what a queue adds to pods'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

# What a queue of its own namespace needs.
cat >rights.yaml <<'END'
apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: gpuqd-jobs, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gpuqd-jobs}
subjects:
- {kind: ServiceAccount, name: gpuqd, namespace: gpuq-system}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: batch-low}
value: 1000
END
cat >site.yaml <<'END'
version: 1
queues:
- {name: default}
- name: team
  namespace: team
  pod_policy: restricted
  image: docker.io/local/busybox:1
  priority_class: batch-low
  image_pull_secrets: [registry-key]
- {name: careful, accounting_finalizer: true}
- {name: nowhere, namespace: forbidden}
END

cluster_for_gpuqd --with "$PWD/rights.yaml" --nodes 2 --gpus 4

test_expect_success 'a daemon with queues' '
	start_kube_gpuqd --site "$PWD/site.yaml" && wait_for 60 node_is node2 idle
'

# ---- gangs ----

test_expect_success 'a gang of four: all its pods, a headless Service, a name for each' '
	id=$(fake_job "pods: 4\ngpus: 2\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && n_pods "$id" 4 &&
	pods_of "$id" spec.nodeName | sort | uniq -c | awk "{ print \$1 }" >spread && printf "2\n2\n" >expected &&
	test_cmp expected spread &&
	pods_of "$id" spec.subdomain | sort -u >subdomain && test "$(wc -l <subdomain)" = 1 &&
	kube get "gpuq-jobs/services/$(cat subdomain)" spec.clusterIP,spec.publishNotReadyAddresses >service &&
	says service "^None.*[Tt]rue" &&
	pods_of "$id" spec.hostname | sort -u | wc -l >hosts && test "$(cat hosts)" = 4
'

test_expect_success 'the pods know each other by rendezvous variables' '
	pods_of "$id" spec.containers.0.env >env && says env "WORLD_SIZE" && says env "MASTER_ADDR" && says env "RANK"
'

test_expect_success 'a gang that lacks one pod starts none' '
	next=$(fake_job "pods: 2\ngpus: 1") && wait_for 60 job_is "$next" reason Resources && n_pods "$next" 0 &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED 120 && job_becomes "$next" COMPLETED 120
'

test_expect_success 'a pod of a gang fails: all of them leave, its code is the job'\''s' '
	cat >gang.yaml <<-END &&
	groups:
	- {name: good, pods: 2, gpus: 1}
	- {name: bad, pods: 1, gpus: 1}
	image: $kube_image
	command: [sleep, "1"]
	$(fate run=20s exit-code=4)
	END
	id=$(submit gang.yaml) && job_becomes "$id" FAILED 120 && job_is "$id" exit_code 4 && exits 4 gpuq wait "$id"
'

# ---- scripts ----

test_expect_success 'a script travels as one immutable ConfigMap' '
	cat >train.sh <<-\END &&
	#!/bin/sh
	#GPUQ -g 1
	echo hello
	END
	id=$(submit --queue team train.sh) && pods_namespace=team && wait_for 60 n_pods "$id" 1 &&
	test "$(pods_of "$id" spec.securityContext.runAsNonRoot)" = true &&
	kube list team/configmaps metadata.name,immutable,data >maps && says maps "true.*echo hello" &&
	job_becomes "$id" COMPLETED 120
'

test_expect_success 'its pod has the image, the priority and the secrets of its queue' '
	pods_of "$id" spec.containers.0.image,spec.priorityClassName,spec.imagePullSecrets >pod &&
	says pod "busybox" && says pod "batch-low" && says pod "registry-key" &&
	test "$(pods_of "$id" spec.priority)" = 1000 && pods_namespace=gpuq-jobs
'

# Finished pods stay for a while, so that their logs can be read; then all of it goes.
test_expect_success 'what was made for a job goes with it' '
	stop_gpuqd && printf "finished_pod_keep: 1s\n" >gpuqd.yaml && start_kube_gpuqd --config "$PWD/gpuqd.yaml" &&
	wait_for 120 eval "test -z \"\$(kube list team/pods metadata.name; kube list gpuq-jobs/pods metadata.name)\"" &&
	wait_for 120 eval "test -z \"\$(kube list team/configmaps metadata.name | grep gpuq)\"" &&
	wait_for 120 eval "test -z \"\$(kube list gpuq-jobs/services metadata.name)\""
'

# ---- arrays, completions ----

test_expect_success 'an array: each element once, two at a time' '
	id=$(fake_job "array: 0-4%%2\ngpus: 1") && exits 0 gpuq wait "$id" &&
	gpuq status "${id}_3" --json | json state >element && echo COMPLETED >expected && test_cmp expected element
'

test_expect_success 'a Job with more completions than parallelism is such an array' '
	cat >job.yaml <<-END &&
	apiVersion: batch/v1
	kind: Job
	metadata: {name: many}
	spec:
	  parallelism: 2
	  completions: 5
	  template:
	    spec:
	      restartPolicy: Never
	      containers:
	      - name: main
	        image: $kube_image
	        command: [sleep, "1"]
	        resources: {limits: {nvidia.com/gpu: 1}}
	END
	id=$(submit job.yaml) && gpuq status "$id" --json | head -n 1 | json array >array &&
	says array "throttle.: 2" && says array "size.: 5" && exits 0 gpuq wait "$id"
'

# ---- quota ----

test_expect_success 'a namespace'\''s quota makes a job wait' '
	kube create team/resourcequotas - <<-END >/dev/null &&
	{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus"},
	 "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}
	END
	kube wait team/resourcequotas/gpus "status.hard.[requests.nvidia.com/gpu]=2" --timeout 60 &&
	a=$(fake_job "queue: team\ngpus: 2\n$(fate hang=true)") && job_becomes "$a" RUNNING 120 &&
	b=$(fake_job "queue: team\ngpus: 1") && wait_for 60 job_is "$b" reason NamespaceQuota &&
	c=$(fake_job "gpus: 1") && job_becomes "$c" COMPLETED 120 && job_is "$b" state PENDING
'

test_expect_success 'until it is free again' '
	gpuq cancel "$a" && job_becomes "$a" CANCELLED 120 && job_becomes "$b" COMPLETED 120 && job_is "$b" exit_code 0
'

# ---- refusals ----

# refused FIELD 'LINES of the pod spec': with the path of the field, nothing stored
refused() {
	cat >refused.yaml <<-END
	apiVersion: v1
	kind: Pod
	metadata: {name: refused}
	spec:
	  $2
	  containers:
	  - name: main
	    image: $kube_image
	    command: [sleep, "1"]
	    ${3-}
	END
	before=$(gpuq queue --json | wc -l)
	exits 1 gpuq submit refused.yaml && says err "$1" && test "$(gpuq queue --json | wc -l)" = "$before"
}

test_expect_success 'pods that want the host are refused with the field'\''s path' '
	refused "spec\.hostNetwork" "hostNetwork: true" && refused "spec\.hostPID" "hostPID: true" &&
	refused "containers\[0\]\.securityContext\.privileged" "" "securityContext: {privileged: true}" &&
	refused "volumes\[0\]\.hostPath" "volumes: [{name: root, hostPath: {path: /}}]"
'

test_expect_success 'another namespace than the queue'\''s is refused by name' '
	sed "s/name: many/name: many, namespace: elsewhere/" job.yaml >elsewhere.yaml &&
	exits 1 gpuq submit elsewhere.yaml && says err "elsewhere" && says err "gpuq-jobs"
'

test_expect_success 'a job without an image is refused' '
	printf "command: [sleep]\n" >bare.yaml && exits 1 gpuq submit bare.yaml && says err "image"
'

# Rights are bound in each namespace: without it the right to create pods there is missing first.
test_expect_success 'a queue whose namespace is missing: the job waits and says why' '
	id=$(fake_job "queue: nowhere\ngpus: 1") && wait_for 120 job_is "$id" reason ClusterRefused &&
	gpuq status "$id" >out && says out "right/create pods" && says out "namespace .forbidden" && gpuq cancel "$id" && job_becomes "$id" CANCELLED 60
'

# ---- ends ----

test_expect_success 'a failure is tried again as often as backoffLimit says' '
	sed "s/  parallelism: 2/  backoffLimit: 1/; /completions/d; s/^    spec:/    metadata: {annotations: {gpuq.test\/exit-code: \"9\"}}\n    spec:/" \
		job.yaml >fails.yaml && id=$(submit fails.yaml) && job_becomes "$id" FAILED 180 &&
	job_is "$id" attempt 1 && job_is "$id" exit_code 9 && exits 9 gpuq wait "$id"
'

test_expect_success 'out of memory is no failure' '
	id=$(fake_job "gpus: 1\n$(fate oom=true)") && job_becomes "$id" OUT_OF_MEMORY 120 && exits 137 gpuq wait "$id"
'

test_expect_success 'cancel' '
	id=$(fake_job "gpus: 1\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && gpuq cancel "$id" &&
	job_becomes "$id" CANCELLED 120 && exits 252 gpuq wait "$id" && wait_for 60 n_pods "$id" 0
'

test_expect_success 'a job that is cancelled before it runs leaves no pod' '
	id=$(fake_job "gpus: 1\n$(fate start=60s)") && job_becomes "$id" STARTING 60 && wait_for 60 n_pods "$id" 1 &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED 120 && wait_for 60 n_pods "$id" 0
'

test_expect_success 'the time limit ends a job' '
	id=$(fake_job "gpus: 1\ntime: 3s\n$(fate hang=true)") && job_becomes "$id" TIMEOUT 180 && exits 251 gpuq wait "$id"
'

test_expect_success 'a queue may ask for a finalizer: the pod goes only when its end is in the books' '
	id=$(fake_job "queue: careful\ngpus: 1\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && pod=$(the_pod "$id") &&
	kube get "$pod" metadata.finalizers >finalizers && says finalizers "gpuq.io/" &&
	kill_gpuqd && kube delete "$pod" --grace 0 && kube get "$pod" metadata.deletionTimestamp >deleted && says deleted 20 &&
	start_kube_gpuqd --config "$PWD/gpuqd.yaml" && wait_for 120 job_is "$id" attempt 1 && kube wait "$pod" gone --timeout 60 &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED 120 && wait_for 60 n_pods "$id" 0
'

test_expect_success 'nothing was over-committed' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
