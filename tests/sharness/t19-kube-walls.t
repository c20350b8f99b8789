#!/bin/sh
test_description='real control plane: what the jobs of one namespace may mount of it'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --nodes 1

cat >site.yaml <<'END'
version: 1
queues:
- {name: default}
- {name: open, secrets: any}
- {name: listed, secrets: [team-*], config_maps: [team-*], volume_claims: [data]}
- {name: own, config_maps: owner, volume_claims: owner}
- {name: tokens, service_account_token: true, secrets: any}
- {name: strict, pod_policy: restricted}
END

# object KIND NAME [USER]: in gpuq-jobs
object() {
	object_labels=
	[ -z "${3-}" ] || object_labels=", \"labels\": {\"gpuq.io/user\": \"$3\"}"
	case $1 in
	Secret) object_more='"stringData": {"k": "v"}' ;;
	*) object_more='"data": {"k": "v"}' ;;
	esac
	echo "{\"apiVersion\": \"v1\", \"kind\": \"$1\", \"metadata\": {\"name\": \"$2\", \"namespace\": \"gpuq-jobs\"$object_labels}, $object_more}" |
		kube apply -f - >/dev/null
}

# mounts QUEUE KIND NAME: submits a job that mounts it, prints the id
mounts() {
	fake_job "$(fate run=1s)\nqueue: $1\nvolumes: [{$2: $3, path: /x}]"
}

# refused QUEUE KIND NAME WORDS: at submission
refused() {
	printf "image: i\ncommand: [a]\nqueue: $1\nvolumes: [{$2: $3, path: /x}]\n" >job.yaml &&
		exits 1 gpuq submit job.yaml && says err "$4"
}

# fails JOB WORDS: it ends before it runs, and says why
fails() {
	job_becomes "$1" FAILED 30 && n_pods "$1" 0 && gpuq why "$1" >out && says out "$2"
}

me=$(id -un)

test_expect_success 'an account without rights to Secrets; objects of several users' '
	object Secret mine "$me" && object Secret hers ann && object Secret nobodys && object ConfigMap mine "$me" &&
	object ConfigMap hers ann && bound_claim hers "{gpuq.io/user: ann}" && object Secret team-a && start_kube_gpuqd --site site.yaml
'

test_expect_success 'where several users share a namespace, Secrets are owner: refused without the right, and why' '
	a=$(mounts default secret mine) && fails "$a" "optional/secrets.yaml"
'

test_expect_success 'with the right: own Secrets are mounted, others are not' '
	kube apply -f "$test_source/etc/kubernetes/optional/secrets.yaml" >/dev/null && sleep 1 &&
	a=$(mounts default secret mine) && job_becomes "$a" COMPLETED 60 &&
	b=$(mounts default secret hers) && fails "$b" "Secret hers: not of user $me" &&
	c=$(mounts default secret nobodys) && fails "$c" "gpuq.io/user=$me"
'

test_expect_success 'an env of a manifest is a mount as well' '
	cat >pod.yaml <<-\END && d=$(submit pod.yaml) && fails "$d" "Secret hers: not of user"
		apiVersion: v1
		kind: Pod
		metadata: {name: p}
		spec:
		  containers:
		  - name: c
		    image: docker.io/local/busybox:1
		    env: [{name: K, valueFrom: {secretKeyRef: {name: hers, key: k}}}]
	END
'

test_expect_success 'ConfigMaps and claims are any by default, owner or a list where the queue says so' '
	a=$(mounts default config_map hers) && job_becomes "$a" COMPLETED 60 &&
	b=$(mounts own config_map hers) && fails "$b" "ConfigMap hers: not of user" &&
	c=$(mounts own config_map mine) && job_becomes "$c" COMPLETED 60 &&
	d=$(mounts own claim hers) && fails "$d" "PersistentVolumeClaim hers: not of user" &&
	refused listed secret hers "not among the secrets" && refused listed config_map hers "not among the config_maps" &&
	refused listed claim other "not among the volume_claims" &&
	e=$(mounts listed secret team-a) && job_becomes "$e" COMPLETED 60 && f=$(mounts open secret hers) && job_becomes "$f" COMPLETED 60
'

test_expect_success 'an object that does not exist yet is waited for' '
	a=$(mounts own config_map late) && job_becomes "$a" STARTING 30 && sleep 1 && n_pods "$a" 0 && object ConfigMap late "$me" &&
	job_becomes "$a" COMPLETED 60
'

test_expect_success 'the script of another job is not mountable, in any queue' '
	printf "#!/bin/sh\ntrue\n" >script && a=$(submit --image "$kube_image" --annotation=gpuq.test/run=300s script) &&
	job_becomes "$a" RUNNING && name=$(kube list gpuq-jobs/configmaps metadata.name | grep script) &&
	refused default config_map "$name" "gpuqd made it for a job" && refused open config_map "$name" "gpuqd made it" && gpuq cancel "$a"
'

test_expect_success 'projected tokens only where the queue allows them' '
	cat >token.yaml <<-\END &&
		apiVersion: v1
		kind: Pod
		metadata: {name: p, annotations: {gpuq.test/run: 1s}}
		spec:
		  containers: [{name: c, image: docker.io/local/busybox:1, volumeMounts: [{name: t, mountPath: /t}]}]
		  volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t}}]}}]
	END
	exits 1 gpuq submit token.yaml && says err "service_account_token" && a=$(submit -p tokens token.yaml) &&
	job_becomes "$a" COMPLETED 60
'

test_expect_success 'paths and annotations that choose devices are refused; containers without devices see none' '
	cat >magic.yaml <<-\END &&
		apiVersion: v1
		kind: Pod
		metadata: {name: p}
		spec:
		  containers:
		  - {name: c, image: i, volumeMounts: [{name: t, mountPath: //var/run/./nvidia-container-devices/all}]}
		  volumes: [{name: t, emptyDir: {}}]
	END
	exits 1 gpuq submit magic.yaml && says err "mounts there choose devices" &&
	exits 1 gpuq submit --image i --annotation=cdi.k8s.io/a=nvidia.com/gpu=all script && says err "cdi.k8s.io" &&
	cat >two.yaml <<-\END &&
		apiVersion: v1
		kind: Pod
		metadata: {name: p, annotations: {gpuq.test/run: 300s}}
		spec:
		  initContainers: [{name: i, image: docker.io/local/busybox:1, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]
		  containers:
		  - {name: c, image: docker.io/local/busybox:1, resources: {limits: {nvidia.com/gpu: 1}}}
		  - {name: d, image: docker.io/local/busybox:1, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}
	END
	a=$(submit two.yaml) && wait_for 60 n_pods "$a" 1 &&
	pods_of "$a" "spec.initContainers.0.env[name=NVIDIA_VISIBLE_DEVICES].value,spec.containers.1.env[name=NVIDIA_VISIBLE_DEVICES].value,spec.containers.0.env[name=NVIDIA_VISIBLE_DEVICES].value" >out &&
	says out "^void.void.?$"
'

test_expect_success 'labels say whose pods they are' '
	pods_of "$a" "metadata.labels[gpuq.io/user],metadata.labels[gpuq.io/queue]" >out && says out "$me.default" && gpuq cancel "$a" &&
	b=$(fake_job "$(fate run=300s)\naccount: physics") && wait_for 60 n_pods "$b" 1 &&
	pods_of "$b" "metadata.labels[gpuq.io/account]" >out && says out "^physics$" && gpuq cancel "$b"
'

test_expect_success 'restricted, against an image of root: it fails at once and says what to change' '
	a=$(fake_job "$(fate start=600s)\nqueue: strict") && wait_for 60 n_pods "$a" 1 &&
	kube patch "$(the_pod "$a")/status" "{\"status\": {\"phase\": \"Pending\", \"containerStatuses\": [{\"name\": \"main\", \"image\": \"i\",
		\"imageID\": \"\", \"ready\": false, \"restartCount\": 0, \"state\": {\"waiting\": {\"reason\": \"CreateContainerConfigError\",
		\"message\": \"container has runAsNonRoot and image will run as root\"}}}]}}" >/dev/null &&
	job_becomes "$a" FAILED 20 && gpuq why "$a" >out && says out "runAsUser"
'

test_expect_success 'restricted is one word for all queues' '
	sed "s/^version: 1/version: 1\npod_policy: restricted/" site.yaml >all.yaml && gpuq apply -f all.yaml &&
	a=$(fake_job "$(fate run=300s)") && wait_for 60 n_pods "$a" 1 &&
	pods_of "$a" "spec.securityContext.runAsNonRoot" >out && says out true && gpuq export >out && says out "pod_policy: restricted" &&
	echo "{version: 1, pod_policy: strict}" >wrong.yaml && exits 1 gpuq apply -f wrong.yaml && says err "restricted or privileged"
'

test_expect_success 'nothing was over-committed' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
