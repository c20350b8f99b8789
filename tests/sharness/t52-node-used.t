#!/bin/sh
test_description='a real node: what jobs used, from the kubelet; without the right it is not known, and said so'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/metrics.yaml" --no-kwok --real-node --real-gpus 4

# container 'COMMANDS' ['LINES']: a job of these shell commands
container() {
	printf "image: docker.io/local/busybox:1\ncommand: [/bin/sh, -c, %s]\ncpus: 1\n%s\n" "$(printf %s "$1" | json_text)" "${2:-}" >real.yaml && submit real.yaml
}

json_text() {
	/usr/bin/python3 -c "import json, sys; print(json.dumps(sys.stdin.read()))"
}

# at_least N VALUE
at_least() {
	test "$2" != null && test "$2" -ge "$1"
}

test_expect_success 'CPU time and memory of a job that works, in status, history and sacct' '
	printf "kubelet_metrics: true\nmetrics_interval: 1s\n" >gpuqd.yaml && start_kube_gpuqd --config "$PWD/gpuqd.yaml" &&
	a=$(container "echo begun; x=\$(head -c 44000000 /dev/zero | tr \"\\\\0\" x); end=\$((\$(date +%s) + 45)); while [ \$(date +%s) -lt \$end ]; do :; done") && gpuq wait "$a" && job_is "$a" state COMPLETED &&
	gpuq logs --timestamps "$a" >out && says out "^20[-0-9]+T[0-9:.]+Z begun$" && exits 1 gpuq logs --attempt 1 "$a" &&
	at_least 5000 "$(job "$a" used.cpu_ms)" && at_least 40000000 "$(job "$a" used.memory_bytes)" && job_is "$a" used.read_bytes null && job_is "$a" used.gpu_percent null &&
	gpuq status "$a" >out && says out "^Used CPU" && says out "^Used memory" && gpuq history -h -j "$a" -o CPU_TIME,MAX_MEMORY >out && ! grep " -$" out &&
	mkdir bin && ln -s "$test_build/gpuq/gpuq" bin/sacct && bin/sacct -nPXj "$a" -o TotalCPU,MaxRSS,TRESUsageInTot >out && says out "^00:[0-9.:]*[|][0-9]+K[|]cpu="
'

test_expect_success 'also over a restart of gpuqd; of a short one nothing is known' '
	b=$(container "end=\$((\$(date +%s) + 60)); while [ \$(date +%s) -lt \$end ]; do :; done" "memory: 2Gi") && job_becomes "$b" RUNNING 120 && kill_gpuqd && start_kube_gpuqd --config "$PWD/gpuqd.yaml" && gpuq wait "$b" 2>err &&
	says err "^gpuq: job $b: it requested 2.0 GiB of memory a pod and used" &&
	at_least 5000 "$(job "$b" used.cpu_ms)" && c=$(container true) && gpuq wait "$c" && job_is "$c" used null
'

test_expect_success 'a cluster that gives no right to it' '
	kube delete /apis/rbac.authorization.k8s.io/v1/clusterrolebindings/gpuqd-metrics && d=$(container "sleep 30") && job_becomes "$d" RUNNING 120 && wait_for 60 eval "gpuq diag --json | json measured.trouble | grep nodes/proxy" &&
	{ gpuq doctor >out || :; } && says out "^warning +rights +kubelet_metrics: .* may not get nodes/proxy" && gpuq cancel "$d" && job_becomes "$d" CANCELLED 120 && stop_gpuqd
'

test_done
