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
	policies >text && grep "not applied" text && { gpuq doctor --json || :; } | grep "\"backend\":\"dra\"" | grep "resource.k8s.io/v1, but gpuqd may not use it"
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

# same TEXT 'LIMITS' ['METADATA']: gpuq submit and the apiserver refuse the same pod in the same words
same() {
	refused "$1" same gpuq-jobs "\"schedulerName\": \"gpuq\"" "$(limits "$2")" ${3+"$3"} &&
		echo "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"same\"${3:+, $3}}, \"spec\": {\"containers\": [{\"name\": \"main\", \"image\": \"x\", $(limits "$2")}]}}" >same.yaml &&
		! gpuq submit same.yaml 2>err && grep -F -e "$1" err || { cat err; return 1; }
}

test_expect_success 'requests that gpuq refuses are refused in its words' '
	same "expected tencent.com/vcuda-core beside it: both are needed" "\"tencent.com/vcuda-memory\": \"15\"" &&
	same "expected tencent.com/vcuda-memory (in blocks of 256 MiB) beside it: both are needed for a part of a device" "\"tencent.com/vcuda-core\": \"50\"" &&
	same "expected 1 to 99 (percent of one device) or a multiple of 100 (whole devices): core above 100 must be a multiple of 100, such as 100 or 200" "\"tencent.com/vcuda-core\": \"150\", \"tencent.com/vcuda-memory\": \"30\"" &&
	a_pod l gpuq-jobs "\"schedulerName\": \"gpuq\"" "$(limits "\"tencent.com/vcuda-core\": \"200\"")"
'

note() {
	echo "\"annotations\": {$1}"
}

# takes 'LIMITS' ['METADATA']: a pod that gpuq would take is not refused
takes() {
	a_pod takes gpuq-jobs "\"schedulerName\": \"gpuq\"" "$(limits "$1")" ${2+"$2"} || { cat kube.out; return 1; }
	kube delete gpuq-jobs/pods/takes >/dev/null
}

test_expect_success 'likewise those of the other dialects, and of two at once' '
	part="expected a part of a device from \"0.01\" to \"0.99\" in hundredths" &&
	for f in 0 1 1.5 abc 0.001 0.125 1e0 9e-3 0.5Ki -0.5 0.5000000000001 99999999999e99; do same "$part" "" "$(note "\"gpu-fraction\": \"$f\"")" || return 1; done && same "expected MiB of one device, at least 1" "" "$(note "\"gpu-memory\": \"0\"")" &&
	same "expected a whole number without a unit" "" "$(note "\"gpu-memory\": \"1Gi\"")" && same "expected either gpu-fraction or gpu-memory, not both" "" "$(note "\"gpu-fraction\": \"0.5\", \"gpu-memory\": \"100\"")" &&
	same "expected devices in one dialect: nvidia.com/gpu and gpu-fraction cannot be asked together" "\"nvidia.com/gpu\": \"1\"" "$(note "\"gpu-fraction\": \"0.5\"")" &&
	same "expected devices in one dialect: nvidia.com/gpu and aliyun.com/gpu-mem cannot be asked together" "\"nvidia.com/gpu\": \"1\", \"aliyun.com/gpu-mem\": \"2\"" &&
	same "expected at least 1 (GiB of one device)" "\"aliyun.com/gpu-mem\": \"0\"" && same "several replicas may be the same device" "\"nvidia.com/gpu.shared\": \"2\"" &&
	same "expected a MIG profile such as nvidia.com/mig-1g.10gb" "\"nvidia.com/mig-abc\": \"1\"" && same "expected one MIG profile in a pod" "\"nvidia.com/mig-1g.5gb\": \"1\", \"nvidia.com/mig-2g.10gb\": \"1\"" &&
	same "expected a percentage from 0 to 100: the nearest is 100" "\"nvidia.com/gpu\": \"1\", \"nvidia.com/gpucores\": \"101\"" &&
	same "expected either nvidia.com/gpumem or a percentage, not both" "\"nvidia.com/gpu\": \"1\", \"nvidia.com/gpumem\": \"100\", \"nvidia.com/gpumem-percentage\": \"10\"" &&
	same "expected tencent.com/vcuda-core beside it: both are needed" "\"tencent.com/vcuda-core\": \"0\", \"tencent.com/vcuda-memory\": \"5\"" &&
	same "percent of a device" "\"tencent.com/vcuda-core\": \"50\", \"tencent.com/vcuda-memory\": \"5\"" "$(note "\"tencent.com/vcuda-core-limit\": \"120\"")"
'

test_expect_success 'and keys that gpuqd and the plugins write' '
	for key in ALIYUN_COM_GPU_MEM_IDX tencent.com/predicate-node hami.io/vgpu-node gpuq.io/record; do same "$key: is set by gpuqd: omit it" "\"cpu\": \"1\"" "$(note "\"$key\": \"x\"")" || return 1; done &&
	same "gpuq.io/job: is set by gpuqd: omit it" "\"cpu\": \"1\"" "\"labels\": {\"gpuq.io/job\": \"7\"}" && same "cdi.k8s.io chooses devices: request gpus instead" "\"cpu\": \"1\"" "$(note "\"cdi.k8s.io/x\": \"nvidia.com/gpu=all\"")"
'

test_expect_success 'what gpuq takes is not refused' '
	for f in 0.5 0.01 0.99 .5 0.500 500m 5e-1 50E-2 00.57 +0.29 290000u 0.4991; do takes "" "$(note "\"gpu-fraction\": \"$f\"")" || return 1; done && takes "" "$(note "\"gpu-memory\": \"2000\"")" && takes "\"nvidia.com/gpu.shared\": \"1\"" &&
	for p in 1g.5gb.me 1g.5gb.shared 1g.5gb.me.shared 1c.3g.20gb 7g.80gb; do takes "\"nvidia.com/mig-$p\": \"1\"" || return 1; done && takes "\"nvidia.com/gpu\": \"1\", \"nvidia.com/gpumem\": \"1000\", \"nvidia.com/gpucores\": \"30\"" && takes "\"nvidia.com/gpu\": \"1\", \"rdma/hca\": \"1\"" &&
	takes "\"tencent.com/vcuda-core\": \"50\", \"tencent.com/vcuda-memory\": \"5\"" "$(note "\"tencent.com/vcuda-core-limit\": \"80\", \"gpuq.io/queue\": \"default\"")"
'

q="'"

test_expect_success 'counts that are too large, profiles, kinds of device and keys of HAMi are refused alike as well' '
	for name in nvidia.com/gpu tencent.com/vcuda-core rdma/hca; do same "expected a whole number without a unit, not ${q}1e30$q" "\"$name\": \"1e30\"" || return 1; done &&
	same "expected a whole number without a unit" "" "$(note "\"gpu-memory\": \"99999999999999999999999\"")" && takes "" "$(note "\"gpu-memory\": \"0100000000\"")" &&
	for p in 8g.80gb 9g.5gb 1c.8g.80gb; do same "expected a MIG profile from 1g to 7g: a card has 7 slices of compute, $q$p$q more" "\"nvidia.com/mig-$p\": \"1\"" || return 1; done &&
	same "expected 1: several replicas may be of the same instance" "\"nvidia.com/mig-1g.5gb.shared\": \"2\"" &&
	same "expected one kind of device in a pod: amd.com/gpu is requested beside another" "\"nvidia.com/gpu\": \"1\", \"amd.com/gpu\": \"1\"" &&
	same "expected one kind of device: google.com/tpu is requested as well" "\"google.com/tpu\": \"1\", \"amd.com/gpu\": \"1\"" &&
	for key in use-gpuuuid nouse-gpuuuid use-gpuindexes nouse-gpuindexes; do same "nvidia.com/$key: gpuqd chooses the device: omit it" "\"nvidia.com/gpu\": \"1\"" "$(note "\"nvidia.com/$key\": \"x\"")" || return 1; done &&
	same "nvidia.com/use-gputype: gpuqd chooses devices by flavor: name the site${q}s in flavor, in a manifest in gpuq.io/flavor" "\"nvidia.com/gpu\": \"1\"" "$(note "\"nvidia.com/use-gputype\": \"A100\"")" &&
	same "nvidia.com/nouse-gputype: gpuqd chooses devices by flavor: name the acceptable ones in flavor, in a manifest in gpuq.io/flavor" "\"nvidia.com/gpu\": \"1\"" "$(note "\"nvidia.com/nouse-gputype\": \"A100\"")" &&
	takes "\"nvidia.com/gpu\": \"1\"" "$(note "\"nvidia.com/use-gputype\": \"A100\", \"gpuq.io/flavor\": \"a100\"")" &&
	same "expected nvidia.com/gpu beside it: it is the priority of a pod with devices" "\"nvidia.com/priority\": \"1\"" && takes "\"nvidia.com/gpu\": \"1\", \"nvidia.com/priority\": \"1\"" &&
	same "aliyun.com/gpu-count: tells how many devices a node has: request aliyun.com/gpu-mem" "\"aliyun.com/gpu-mem\": \"2\", \"aliyun.com/gpu-count\": \"1\""
'

# turns NAME: one of it in an init container and one in a container are 1, unless the former stays beside the latter
turns() {
	one=$(limits "\"$1\": \"1\"")
	first="\"name\": \"first\", \"image\": \"$kube_image\", $one"
	a_pod turns gpuq-jobs "\"schedulerName\": \"gpuq\", \"initContainers\": [{$first}]" "$one" || { cat kube.out; return 1; }
	kube delete gpuq-jobs/pods/turns >/dev/null
	refused "several replicas may be" turns gpuq-jobs "\"schedulerName\": \"gpuq\", \"initContainers\": [{$first, \"restartPolicy\": \"Always\"}]" "$one"
}

test_expect_success 'a request of none is no request, and what runs one after the other is not added up' '
	a_pod none gpuq-jobs "" "$(limits "\"nvidia.com/gpu\": \"0\"")" && kube delete gpuq-jobs/pods/none >/dev/null && takes "\"amd.com/gpu\": \"1\", \"nvidia.com/gpu\": \"0\"" &&
	turns nvidia.com/mig-1g.5gb.shared && turns nvidia.com/gpu.shared
'

test_expect_success 'devices under whatever name are given by gpuqd' '
	for name in example.com/npu huawei.com/Ascend910 nvidia.com/pgpu aliyun.com/gpu-core.percentage rdma/hca; do refused "$ours" o gpuq-jobs "" "$(limits "\"$name\": \"1\"")" || return 1; done &&
	refused "$ours" p gpuq-jobs "" "" "\"labels\": {\"sharedgpu/gpu_request\": \"0.5\"}"
'

# debug VALUE: what kubectl debug does to the pod i, with a variable
debug() {
	kube patch gpuq-jobs/pods/i/ephemeralcontainers --type strategic "{\"spec\": {\"ephemeralContainers\": [{\"name\": \"d$1\", \"image\": \"x\", \"env\": [{\"name\": \"$2\", \"value\": \"$1\"}]}]}}" >kube.out 2>&1
}

test_expect_success 'a container of kubectl debug gets no devices, and is let in without' '
	! debug all NVIDIA_VISIBLE_DEVICES && grep "NVIDIA_VISIBLE_DEVICES is set by gpuqd: omit it" kube.out && debug void NVIDIA_VISIBLE_DEVICES && debug a PLAIN
'

test_expect_success 'doctor tells a policy that is not bound, and a namespace of jobs without the label' '
	policies >text && grep "refused in namespaces with label.*: gpuq-jobs" text && kube patch namespaces/gpuq-jobs "{\"metadata\": {\"labels\": {\"gpuq.io/managed\": null}}}" >/dev/null &&
	policies >text && grep "not refused in namespaces of jobs without the label gpuq.io/managed=true: gpuq-jobs" text && ! grep "are refused in" text &&
	{ gpuq doctor || :; } | grep "kubectl label namespace gpuq-jobs gpuq.io/managed=true" &&
	kube patch namespaces/gpuq-jobs "{\"metadata\": {\"labels\": {\"gpuq.io/managed\": \"true\"}}}" >/dev/null && kube delete validatingadmissionpolicybindings/gpuq-devices &&
	policies >text && grep "nothing is refused.*: ValidatingAdmissionPolicy gpuq-devices has no binding" text && kube apply -f "$optional/policies.yaml" >/dev/null &&
	kube patch validatingadmissionpolicybindings/gpuq-devices "{\"spec\": {\"matchResources\": {\"namespaceSelector\": {\"matchLabels\": {\"gpuq.io/managed\": \"never\"}}}}}" >/dev/null &&
	policies >text && grep "has no binding gpuq-devices that denies there" text && ! grep "are refused in" text && kube apply -f "$optional/policies.yaml" >/dev/null &&
	kube delete clusterrolebindings/gpuqd-policies && policies >text && grep "not applied" text && kube apply -f "$optional/policies.yaml" >/dev/null && policies >text && grep "are refused in namespaces with" text
'

test_expect_success 'jobs run as before' '
	id=$(fake_job "gpus: 1\n$(fate hang=true)") && job_becomes "$id" RUNNING 120 && gpuq cancel "$id"
'

test_expect_success 'containers without devices see none, where the apiserver has mutating policies' '
	if kube apply -f "$optional/policies-mutating.yaml" >out 2>&1; then
		void() { a_pod "$1" gpuq-jobs "" "" && kube get "gpuq-jobs/pods/$1" spec >spec && kube delete "gpuq-jobs/pods/$1" >/dev/null && grep -q "void" spec; } &&
		wait_for 60 void m && a_pod n gpuq-jobs "\"schedulerName\": \"gpuq\"" "$gpu" && kube get gpuq-jobs/pods/n spec >spec && ! grep -q void spec &&
		a_pod q gpuq-jobs "\"schedulerName\": \"gpuq\", \"initContainers\": [{\"name\": \"first\", \"image\": \"x\", $(limits "\"rdma/hca\": \"1\"")}, {\"name\": \"second\", \"image\": \"x\", \"env\": [{\"name\": \"NVIDIA_VISIBLE_DEVICES\", \"value\": \"none\"}]}]" "$gpu" &&
		kube get gpuq-jobs/pods/q spec.initContainers >spec && test "$(grep -o void spec | wc -l)" = 1 && kube get gpuq-jobs/pods/q spec.containers >spec && ! grep -q void spec &&
		debug b PLAIN && kube get gpuq-jobs/pods/i spec.ephemeralContainers >spec && test "$(grep -o "\"void\"" spec | wc -l)" = 2
	else
		case ${GPUQ_KUBE_MINOR:-} in 1.3[0-5]) grep MutatingAdmissionPolicy out ;; *) cat out; false ;; esac
	fi
'

test_expect_success 'no device was over-committed' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
