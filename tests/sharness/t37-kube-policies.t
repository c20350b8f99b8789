#!/bin/sh
test_description='real control plane: admission policies keep devices for the pods of gpuqd, and doctor reports them'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

optional=$test_source/etc/kubernetes/optional

cluster_for_gpuqd --nodes 1 --gpus 2

# a_pod NAME NAMESPACE 'SPEC' 'CONTAINER': made with kubectl, by its administrator
a_pod() {
	echo "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"$1\", \"namespace\": \"$2\"${5:+, $5}}, \"spec\": {${3:+$3, }\"containers\": [{\"name\": \"main\", \"image\": \"$kube_image\", \"securityContext\": {\"allowPrivilegeEscalation\": false}${4:+, $4}}]}}" |
		kube apply -f - >kube.out 2>&1
}

# refused TEXT argument...: a pod is refused in these words
refused() {
	refused_text=$1
	shift
	if a_pod "$@"; then
		kube delete "$2/pods/$1" >/dev/null
		return 1
	fi
	grep -F -e "$refused_text" kube.out || { cat kube.out; return 1; }
}

limits() {
	echo "\"resources\": {\"limits\": {$1}}"
}

gpu=$(limits '"nvidia.com/gpu": "1"')
ours="devices in this namespace are given by gpuqd: use gpuq submit, or schedulerName: gpuq without a nodeName"

policies() {
	{ gpuq doctor --json || :; } | grep '"check":"policies"' | json text
}

test_expect_success 'without the policies anyone who may make pods takes devices, and doctor reports it' '
	start_kube_gpuqd && a_pod free gpuq-jobs "\"schedulerName\": \"none\"" "$gpu" && kube delete gpuq-jobs/pods/free >/dev/null &&
	policies >text && grep "not applied" text && { gpuq doctor --json || :; } | grep "\"backend\":\"dra\"" | grep "resource.k8s.io/v1, but no node has devices by it that gpuqd may see"
'

test_expect_success 'applied: pods with devices are refused where namespaces are managed, in the words of gpuqd' '
	kube apply -f "$optional/policies.yaml" >/dev/null && wait_for 60 refused "$ours" a gpuq-jobs "" "$gpu" &&
	policies >text && grep "are refused in namespaces" text &&
	refused "$ours" b gpuq-jobs "" "$(limits "\"nvidia.com/mig-1g.5gb\": \"1\"")" && refused "$ours" c gpuq-jobs "" "$(limits "\"aliyun.com/gpu-mem\": \"2\"")" &&
	refused "$ours" d gpuq-jobs "\"initContainers\": [{\"name\": \"first\", \"image\": \"x\", $gpu}]" &&
	refused "$ours" e gpuq-jobs "\"schedulerName\": \"gpuq\", \"nodeName\": \"node1\"" "$gpu" &&
	refused "$ours" f gpuq-jobs "" "" "\"annotations\": {\"gpu-fraction\": \"0.5\"}" &&
	refused "NVIDIA_VISIBLE_DEVICES is set by gpuqd: omit it" g gpuq-jobs "" "\"env\": [{\"name\": \"NVIDIA_VISIBLE_DEVICES\", \"value\": \"all\"}]"
'

test_expect_success 'what leaves its node to gpuqd, has no devices, or is elsewhere is not refused' '
	a_pod h gpuq-jobs "\"schedulerName\": \"gpuq\"" "$gpu" && a_pod i gpuq-jobs "" "$(limits "\"cpu\": \"1\"")" && a_pod j default "\"schedulerName\": \"none\"" "$gpu" &&
	a_pod k gpuq-jobs "" "\"env\": [{\"name\": \"NVIDIA_VISIBLE_DEVICES\", \"value\": \"void\"}]"
'

# same TEXT 'LIMITS': gpuq submit and the apiserver refuse the same pod in the same words
same() {
	refused "$1" same gpuq-jobs "\"schedulerName\": \"gpuq\"" "$(limits "$2")" &&
		echo "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"same\"}, \"spec\": {\"containers\": [{\"name\": \"main\", \"image\": \"x\", $(limits "$2")}]}}" >same.yaml &&
		! gpuq submit same.yaml 2>err && grep -F -e "$1" err || { cat err; return 1; }
}

test_expect_success 'requests that gpuq refuses are refused in its words' '
	same "expected tencent.com/vcuda-core beside it: both are needed" "\"tencent.com/vcuda-memory\": \"15\"" &&
	same "expected tencent.com/vcuda-memory (in blocks of 256 MiB) beside it: both are needed for a part of a device" "\"tencent.com/vcuda-core\": \"50\"" &&
	same "expected 1 to 99 (percent of one device) or a multiple of 100 (whole devices): core above 100 must be a multiple of 100" "\"tencent.com/vcuda-core\": \"150\", \"tencent.com/vcuda-memory\": \"30\"" &&
	a_pod l gpuq-jobs "\"schedulerName\": \"gpuq\"" "$(limits "\"tencent.com/vcuda-core\": \"200\"")"
'

test_expect_success 'jobs run as before' '
	id=$(fake_job "gpus: 1\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && gpuq cancel "$id"
'

test_expect_success 'containers without devices see none, where the apiserver has mutating policies' '
	if kube apply -f "$optional/policies-mutating.yaml" >out 2>&1; then
		void() { a_pod "$1" gpuq-jobs "" "" && kube get "gpuq-jobs/pods/$1" spec >spec && kube delete "gpuq-jobs/pods/$1" >/dev/null && grep -q "void" spec; } &&
		wait_for 60 void m && a_pod n gpuq-jobs "\"schedulerName\": \"gpuq\"" "$gpu" && kube get gpuq-jobs/pods/n spec >spec && ! grep -q void spec
	else
		case ${GPUQ_KUBE_MINOR:-} in 1.3[0-5]) grep MutatingAdmissionPolicy out ;; *) cat out; false ;; esac
	fi
'

test_expect_success 'no device was over-committed' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
