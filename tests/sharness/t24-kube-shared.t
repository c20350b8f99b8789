#!/bin/sh
test_description='real control plane: nodes whose devices a plugin shares: Aliyun gpushare, Tencent gpu-manager'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/plugins.sh"

cluster_for_gpuqd

# vcuda CORE BLOCKS: the example of kubernetes-gpusharing, with these amounts
vcuda() {
	sed -e "s/\(vcuda-core: *\)[0-9]*/\1$1/" -e "s/\(vcuda-memory: *\)[0-9]*/\1$2/" "$test_source/examples/seeds/vcuda-pod.yaml"
}

test_expect_success 'AC-ALI-2, AC-ALI-4: parts in units fill a device; what the plugin reads is on the pod, and it serves it' '
	cluster node s gpus=0 aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4 label=kind=gpushare && start_kube_gpuqd && wait_for 60 node_frees s 4 &&
	plugin gpushare s && for i in 1 2 3 4; do id=$(part "gpu_memory: 5Gi\nnode_selector: {kind: gpushare}") && job_becomes "$id" RUNNING 120 &&
		echo "$id $(noted "$id" ALIYUN_COM_GPU_MEM_IDX) $(noted "$id" ALIYUN_COM_GPU_MEM_DEV) $(noted "$id" ALIYUN_COM_GPU_MEM_POD)" || return 1; done >all &&
	cut -d" " -f2- all >got && printf "0 15 5\n0 15 5\n0 15 5\n1 15 5\n" >want && test_cmp want got && ! grep -E "failed|confused" s.log &&
	gpuq cancel $(cut -d" " -f1 all) && wait_for 60 node_frees s 4
'

# theirs NODE INDEX:UNITS...: pods of others, which the plugin has served, called NODE-INDEX-UNITS
theirs() {
	theirs_node=$1
	shift
	for theirs_part; do
		theirs_at=${theirs_part%:*} theirs_units=${theirs_part#*:}
		kube create default/pods - >/dev/null <<-END || return 1
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$theirs_node-$theirs_at-$theirs_units", "annotations": {"gpuq.test/hang": "true",
		 "ALIYUN_COM_GPU_MEM_IDX": "$theirs_at", "ALIYUN_COM_GPU_MEM_DEV": "15", "ALIYUN_COM_GPU_MEM_POD": "$theirs_units", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}},
		 "spec": {"nodeName": "$theirs_node", "containers": [{"name": "c", "image": "$kube_image", "resources": {"limits": {"aliyun.com/gpu-mem": "$theirs_units"}}}]}}
		END
	done
}

# units NODE N...: so much is free of each device, as gpuqd knows it
units() {
	units_got=$(gpuq nodes --json | grep "\"name\":\"$1\"" | /usr/bin/python3 -c 'import json, sys; print(*(d["free_memory_mib"] // 1024 for d in json.load(sys.stdin)["devices"]))')
	shift
	[ "$units_got" = "$*" ] || { echo "free are $units_got, not $*"; return 1; }
}

# device_of JOB: the index that its pod was told
device_of() {
	noted "$1" ALIYUN_COM_GPU_MEM_IDX
}

test_expect_success 'AC-ALI-1: of devices with 11, 8, 4 and 15 units free the fullest that holds it, of equal ones the first' '
	theirs s 0:4 1:7 2:11 && wait_for 60 units s 11 8 4 15 && a=$(part "gpu_memory: 8Gi\nnode_selector: {kind: gpushare}") && job_becomes "$a" RUNNING 120 && test "$(device_of "$a")" = 1 &&
	b=$(part "gpu_memory: 5Gi\nnode_selector: {kind: gpushare}") && job_becomes "$b" RUNNING 120 && test "$(device_of "$b")" = 0 && gpuq cancel "$a" "$b" && wait_for 60 units s 11 8 4 15 &&
	c=$(part "gpu_memory: 5Gi\nnode_selector: {kind: gpushare}") && job_becomes "$c" RUNNING 120 && test "$(device_of "$c")" = 1 && gpuq cancel "$c" && wait_for 60 units s 11 8 4 15 &&
	theirs s 0:3 && wait_for 60 units s 8 8 4 15 && d=$(part "gpu_memory: 6Gi\nnode_selector: {kind: gpushare}") && job_becomes "$d" RUNNING 120 && test "$(device_of "$d")" = 0 &&
	! grep -E "failed|confused" s.log && gpuq cancel "$d" && wait_for 60 units s 8 8 4 15
'

test_expect_success 'AC-ALI-12: of four parts three fit: none has a pod, until all four fit' '
	theirs s 0:5 1:4 && wait_for 60 units s 3 4 4 15 && gang=$(part "gpu_memory: 5Gi\npods: 4\nnode_selector: {kind: gpushare}") && wait_for 60 job_is "$gang" reason Fragmented && n_pods "$gang" 0 &&
	kube delete default/pods/s-1-7 --grace 0 >/dev/null && job_becomes "$gang" RUNNING 120 && n_pods "$gang" 4 && job_is "$gang" attempt 0 && ! grep -E "failed|confused" s.log &&
	test "$(pods_of "$gang" metadata.annotations.ALIYUN_COM_GPU_MEM_IDX | sort | tr "\n" " ")" = "1 1 3 3 " &&
	gpuq cancel "$gang"
'

test_expect_success 'AC-ALI-5: two of one amount go one after another, and one of another amount beside them' '
	cluster node slow gpus=0 aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4 label=kind=slow && wait_for 60 node_frees slow 4 && plugin gpushare slow delay=2 &&
	for g in 5 5 7; do part "gpu_memory: ${g}Gi\nnode_selector: {kind: slow}" || return 1; done >ids &&
	for id in $(cat ids); do job_becomes "$id" RUNNING 120 || return 1; done && ! grep -E "failed|confused" slow.log &&
	grep -q "waiting 2" slow.log && ! grep -q "waiting 3" slow.log && gpuq cancel $(cat ids)
'

test_expect_success 'AC-ALI-3, AC-ALI-13: what no device of the cluster can hold is refused at once' '
	printf "image: $kube_image\ncommand: [a]\ngpu_memory: 16Gi\n" >much && exits 1 gpuq submit much && grep "largest device 15 GiB" err &&
	printf "image: $kube_image\ncommand: [a]\ngpus: 2\ngpu_memory: 10Gi\n" >many && exits 1 gpuq submit many && grep HAMi err
'

test_expect_success 'AC-GAIA-1: the matrix row gpu-manager share: best fit by cores and memory, predicted as the plugin chooses' '
	cluster node g gpus=0 tencent.com/vcuda-core=300 tencent.com/vcuda-memory=190 label=kind=gaia && wait_for 60 node_frees g 3 && plugin gpu-manager g devices=3 &&
	gaia() { part "gpu_cores: $1\ngpu_memory: $(($2 * 256))Mi\nnode_selector: {kind: gaia}"; } &&
	for want in "60 43 0" "40 33 1" "30 15 0"; do id=$(gaia ${want% *}) && job_becomes "$id" RUNNING 120 &&
		test "$(noted "$id" tencent.com/predicate-gpu-idx-0)" = "${want##* }" && echo "$id" || return 1; done >ids && ! grep -E "refused|confused" g.log &&
	gpuq cancel $(cat ids) && wait_for 60 node_frees g 3
'

test_expect_success 'AC-GAIA-4: one at a time on a node, whatever it asks for' '
	cluster node g2 gpus=0 tencent.com/vcuda-core=200 tencent.com/vcuda-memory=127 label=kind=g2 && wait_for 60 node_frees g2 2 && plugin gpu-manager g2 delay=1 &&
	for c in 30 30 40; do part "gpu_cores: $c\ngpu_memory: 2560Mi\nnode_selector: {kind: g2}" || return 1; done >ids &&
	for id in $(cat ids); do job_becomes "$id" RUNNING 120 || return 1; done && ! grep -E "refused|confused|waiting 2" g2.log && gpuq cancel $(cat ids) && wait_for 60 node_frees g2 2
'

test_expect_success 'AC-GAIA-7: a soft limit is told to the plugin, and 30 are taken; AC-KGS-2: what the user wrote stays' '
	soft=$(part "gpu_cores: {request: 30, limit: 80}\ngpu_memory: 2560Mi\nnode_selector: {kind: g2}" "a: \"1\", b: \"2\"") && job_becomes "$soft" RUNNING 120 &&
	test "$(noted "$soft" tencent.com/vcuda-core-limit)" = 80 && test "$(noted "$soft" a)$(noted "$soft" b)" = 12 && wait_for 60 node_frees g2 1.7 && gpuq cancel "$soft"
'

# vpart QUEUE CORES BLOCKS [NODE [NOTES]]: a job of that queue
vpart() {
	part "queue: $1\ngpu_cores: $2\ngpu_memory: $(($3 * 256))Mi\nnode_selector: {kind: ${4-g2}}" ${5+"$5"}
}

test_expect_success 'AC-KGS-7: a limit of 0.8: 50 cores run, 40 more wait and say why, 30 more run; the larger of cores and memory is charged' '
	echo "{version: 1, queues: [{name: small, limit: 0.8}]}" >site.yaml && gpuq apply -f site.yaml && wait_for 60 node_frees g2 2 &&
	a=$(vpart small 50 10) && job_becomes "$a" RUNNING 120 && b=$(vpart small 40 5) && wait_for 60 job_is "$b" reason LimitQueue && gpuq why "$b" >why && grep 0.4 why && n_pods "$b" 0 &&
	c=$(vpart small 30 5) && job_becomes "$c" RUNNING 120 && job_is "$a" gpus 0.5 && job_is "$c" gpus 0.3 && job_is "$b" state PENDING && gpuq cancel "$a" "$b" "$c" &&
	d=$(vpart default 10 42) && job_becomes "$d" RUNNING 120 && job_is "$d" gpus 0.666 && ! grep -E "refused|confused" g2.log && gpuq cancel "$d" && wait_for 60 node_frees g2 2
'

# ran JOB: seconds that its pod ran, by the cluster
ran() {
	kube raw GET "$(the_pod "$1")" 2>/dev/null | /usr/bin/python3 -c '
import datetime, json, sys
ended = json.load(sys.stdin)["status"]["containerStatuses"][0]["state"]["terminated"]
at = [datetime.datetime.fromisoformat(ended[k].replace("Z", "+00:00")) for k in ("startedAt", "finishedAt")]
print((at[1] - at[0]).total_seconds())'
}

# used QUEUE: GPU-seconds of its budget
used() {
	gpuq usage "$1" --json | head -n 1 | json used_gpu_minutes | awk "{ print \$1 * 60 }"
}

# near X Y MOST: the two differ by no more
near() {
	awk "BEGIN { d = $1 - ($2); exit !(d <= $3 && -d <= $3) }" || { echo "$1 is not $2, within $3"; return 1; }
}

test_expect_success 'AC-KGS-3: while gpuqd is away parts are charged until their pods end, not until it is back; once' '
	echo "{version: 1, queues: [{name: paid, budget: {gpu_minutes: 150, period: month}}]}" >site.yaml && gpuq apply -f site.yaml &&
	a=$(fake_job "queue: paid\ngpu_cores: 50\ngpu_memory: 2560Mi\nnode_selector: {kind: g2}\n$(fate start=3600s run=2s)") && job_becomes "$a" RUNNING 120 && kill_gpuqd &&
	wait_for 60 eval "kube get $(the_pod "$a") status.phase | grep Succeeded" && lasted=$(ran "$a") && sleep 3 && start_kube_gpuqd && job_becomes "$a" COMPLETED 60 &&
	near "$(job "$a" gpu_seconds)" "0.5 * $lasted" 0.7 && charged=$(used paid) && near "$charged" "$(job "$a" gpu_seconds)" 0.1 &&
	kill_gpuqd && start_kube_gpuqd && test "$(used paid)" = "$charged" && test "$(gpuq usage paid --json | head -n 1 | json budget_gpu_minutes)" = 150
'

test_expect_success 'AC-KGS-4: a budget that is used up: its part runs while nothing else wants the device, and yields to a queue with budget' '
	cluster node one gpus=0 tencent.com/vcuda-core=100 tencent.com/vcuda-memory=63 label=kind=one && wait_for 60 node_frees one 1 && plugin gpu-manager one devices=1 &&
	echo "{version: 1, queues: [{name: out, quota: 0, budget: {gpu_minutes: 0, period: month, mode: soft}}, {name: within, quota: 1, budget: {gpu_minutes: 1000, period: month}}]}" >site.yaml &&
	gpuq apply -f site.yaml && a=$(vpart out 50 30 one) && job_becomes "$a" RUNNING 120 && sleep 1 && job_is "$a" state RUNNING && b=$(vpart within 80 30 one) && job_becomes "$b" RUNNING 120 &&
	wait_for 60 job_is "$a" state PENDING && job_is "$a" evictions.0.cause reclaim && ! grep -E "refused|confused" one.log &&
	test "$(job "$a" gpu_seconds)" != 0.0 && gpuq cancel "$b" && job_becomes "$a" RUNNING 120 && gpuq cancel "$a"
'

test_expect_success 'AC-KGS-5, AC-KGS-6: use beyond the budget is counted; a grant is there at once, and after a restart' '
	awk "BEGIN { exit !($(used out) > 0) }" && test "$(gpuq usage out --json | head -n 1 | json over_budget)" = true && gpuq queues grant out 5 && kill_gpuqd && start_kube_gpuqd &&
	gpuq usage out --json | head -n 1 >usage && test "$(json granted_gpu_minutes <usage)" = 5 && test "$(json over_budget <usage)" = false
'

test_expect_success 'AC-GAIA-3: the matrix row gpu-manager whole: devices are the plugin'\''s choice, and read back; AC-POD-4' '
	cluster node g4 gpus=0 tencent.com/vcuda-core=400 tencent.com/vcuda-memory=252 label=kind=g4 && wait_for 60 node_frees g4 4 && plugin gpu-manager g4 devices=4 &&
	two=$(part "gpus: 2\nnode_selector: {kind: g4}") && job_becomes "$two" RUNNING 120 && grep "served .* 2,3 200" g4.log &&
	wait_for 60 job_is "$two" pods.0.devices.0.index 2 && job_is "$two" pods.0.devices.1.index 3 && job_is "$two" attempt 0
'

test_expect_success 'AC-GAIA-2: another choice among equals: the pod is made again without a prediction, at nobody'\''s expense' '
	cluster node tie gpus=0 tencent.com/vcuda-core=200 tencent.com/vcuda-memory=127 label=kind=tie && wait_for 60 node_frees tie 2 && echo 5 0 >pids &&
	plugin gpu-manager tie processes="$PWD/pids" && id=$(part "gpu_cores: 30\ngpu_memory: 2560Mi\nnode_selector: {kind: tie}") && job_becomes "$id" RUNNING 120 &&
	grep "refused .* pick up:1 predicate: 0" tie.log && grep "served .* 1 30 10" tie.log && wait_for 60 job_is "$id" pods.0.devices.0.index 1 && gpuq cancel "$id" "$two"
'

test_expect_success 'AC-GAIA-6: pods of others reduce what is free of their device, by cores or memory' '
	wait_for 60 node_frees tie 2 && kube create default/pods - >/dev/null <<-END && wait_for 60 node_frees tie 1.206
	{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "theirs", "annotations": {"tencent.com/predicate-gpu-idx-0": "1", "tencent.com/gpu-assigned": "true",
	 "gpuq.test/hang": "true"}}, "spec": {"nodeName": "tie", "containers": [{"name": "c", "image": "$kube_image", "resources": {"limits":
	 {"tencent.com/vcuda-core": "30", "tencent.com/vcuda-memory": "50"}}}]}}
	END
'

test_expect_success 'AC-KGS-1, AC-GAIA-5: requests that gpu-manager has no meaning for are refused, in any container' '
	for bad in "150 30" "0 15" "50 0" "101 0" "199 0" "99 0"; do vcuda $bad >bad.yaml && exits 1 gpuq submit bad.yaml && grep -E "expected" err || return 1; done &&
	for good in "50 15" "100 0" "200 0"; do vcuda $good >good.yaml && gpuq submit --dry-run good.yaml || return 1; done
'

test_expect_success 'nothing was over-committed' 'stop_gpuqd && end_plugins && nothing_was_overcommitted'

test_done
