#!/bin/sh
test_description='a real node: containers, their GPUs, logs, exit codes, memory, grace'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --no-kwok --real-node --real-gpus 4

# real_job 'COMMANDS' ['LINES']: a job of these shell commands in a container
real_job() {
	/usr/bin/python3 - "$1" "${2:-gpus: 1}" <<-\END >real.yaml
	import json, sys
	print('image: docker.io/local/busybox:1\ncommand: %s\n%s' % (json.dumps(["/bin/sh", "-c", sys.argv[1]]), sys.argv[2]))
	END
	submit real.yaml
}

test_expect_success 'a daemon and a node with four GPUs' '
	start_kube_gpuqd && wait_for 120 node_frees real1 4
'

test_expect_success 'a job runs in a container, its exit code comes back' '
	id=$(real_job "echo out; echo err >&2; exit 7") && job_becomes "$id" FAILED 180 && job_is "$id" exit_code 7 &&
	job_is "$id" pods.0.node real1 && exits 7 gpuq wait "$id" && last_result FAILED 7
'

test_expect_success 'its log' '
	gpuq logs "$id" >out && says out "^out$" && says out "^err$" && test "$(wc -l <out)" = 2
'

test_expect_success 'it sees the GPUs it asked for, each once' '
	id=$(real_job "echo \$NVIDIA_VISIBLE_DEVICES" "gpus: 3") && exits 0 gpuq wait "$id" &&
	gpuq logs "$id" >out && grep -Ex "gpu-[0-3],gpu-[0-3],gpu-[0-3]" out | tr , "\n" | sort -u >each &&
	test "$(wc -l <each)" = 3
'

test_expect_success 'a job without GPUs sees none' '
	id=$(real_job "echo \"<\$NVIDIA_VISIBLE_DEVICES>\"" "cpus: 100m") && exits 0 gpuq wait "$id" &&
	gpuq logs "$id" >out && says out "^<(void|none)?>$"
'

test_expect_success 'a script runs as it is, with its arguments and GPUQ_JOB_ID' '
	cat >train.sh <<-\END &&
	#!/bin/sh
	#GPUQ -g 1 --image docker.io/local/busybox:1
	echo "$1 of $GPUQ_JOB_ID"
	END
	id=$(submit train.sh part-1) && exits 0 gpuq wait "$id" && gpuq logs "$id" >out && says out "^part-1 of $id$"
'

test_expect_success 'gpuq run follows, and ends as the job does' '
	printf "image: %s\ncommand: [/bin/sh, -c, \"echo one; sleep 2; echo two; exit 3\"]\ngpus: 1\n" "$kube_image" >run.yaml &&
	exits 3 gpuq run run.yaml && says out "^one$" && says out "^two$" && last_result FAILED 3
'

test_expect_success 'logs -f follows while it runs' '
	id=$(real_job "for i in 1 2 3; do echo line \$i; sleep 1; done") && job_becomes "$id" RUNNING 120 &&
	timeout 120 gpuq logs -f "$id" >out && says out "^line 1$" && says out "^line 3$" && job_becomes "$id" COMPLETED 60
'

test_expect_success 'out of memory is told from failure' '
	id=$(real_job "exec tail /dev/zero" "gpus: 1
memory: 32Mi") && job_becomes "$id" OUT_OF_MEMORY 180 && exits 137 gpuq wait "$id"
'

test_expect_success 'a command that is not there: the job fails and says why' '
	printf "image: %s\ncommand: [/no/such/program]\ngpus: 1\n" "$kube_image" >none.yaml && id=$(submit none.yaml) &&
	job_becomes "$id" FAILED 180 && gpuq status "$id" >out && says out "no/such/program|StartError|no such file"
'

test_expect_success 'cancel lets it leave with grace' '
	id=$(real_job "trap \"echo leaving; sleep 2; echo saved; exit 0\" TERM; echo ready; while :; do sleep 0.2; done" "gpus: 4
grace: 30s") && job_becomes "$id" RUNNING 120 && wait_for 60 eval "gpuq logs $id | grep -x ready" &&
	next=$(real_job "exit 0" "gpus: 4") && { timeout 120 gpuq logs -f "$id" >followed 3>&- 4>&- & follow=$!; } &&
	wait_for 60 grep -x ready followed &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED 120 && wait $follow &&
	says followed "^leaving$" && says followed "^saved$"
'

test_expect_success 'and the next one gets its GPUs only then' '
	job_becomes "$next" COMPLETED 120 && job_is "$next" attempt 0
'

test_expect_success 'who does not leave by itself is killed after its grace' '
	id=$(real_job "trap : TERM; echo ready; while :; do sleep 0.2; done" "gpus: 1
grace: 2s") && job_becomes "$id" RUNNING 120 && wait_for 60 eval "gpuq logs $id | grep -x ready" &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED 120
'

test_expect_success 'the kubelet refuses what another took a moment before: tried again, then run' '
	kill -STOP $gpuqd_pid && foreign_command="sleep 8" && foreign_pod race real1 4 >/dev/null && kill -CONT $gpuqd_pid &&
	id=$(real_job "exit 0" "gpus: 4") && job_becomes "$id" COMPLETED 180
'

test_expect_success 'GPUs that fall ill are not given out' '
	echo 0 1 >"$TMPDIR/k/real/unhealthy" && wait_for 120 node_frees real1 2 &&
	id=$(real_job "exit 0" "gpus: 3") && wait_for 60 job_is "$id" state PENDING &&
	other=$(real_job "exit 0" "gpus: 2") && job_becomes "$other" COMPLETED 120 && job_is "$id" state PENDING &&
	rm "$TMPDIR/k/real/unhealthy" && job_becomes "$id" COMPLETED 180
'

test_expect_success 'the daemon is killed while a container runs' '
	id=$(real_job "sleep 5; echo done; exit 11") && job_becomes "$id" RUNNING 120 && kill_gpuqd && start_kube_gpuqd &&
	exits 11 gpuq wait "$id" && job_is "$id" attempt 0 && gpuq logs "$id" >out && says out "^done$"
'

test_expect_success 'nothing was over-committed' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
