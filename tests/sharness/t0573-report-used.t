#!/bin/sh
test_description='gpuq report: what the pods that ended used, by queue and user; unknown is null; over restarts, in parts of days'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# figure KEY [OPTION...]: of the only row
figure() {
	figure_key=$1
	shift
	gpuq report --json "$@" >figure.out && test "$(wc -l <figure.out)" = 1 && json "$figure_key" <figure.out
}

at_least() {
	test "$2" != null && test "$2" -ge "$1"
}

test_expect_success 'jobs with and without devices, of one queue' '
	printf "version: 1\nqueues: [{name: a}, {name: b}]\n" >site.yaml && start_gpuqd --gpus 2 --site "$PWD/site.yaml" &&
	one=$(submit -p a --wrap "x=\$(head -c 30000000 /dev/zero | tr \"\\\\0\" x); end=\$((\$(date +%s) + 2)); while [ \$(date +%s) -lt \$end ]; do :; done") &&
	two=$(submit -p a --gpus 1 --wrap "end=\$((\$(date +%s) + 2)); while [ \$(date +%s) -lt \$end ]; do :; done") && gpuq wait "$one" "$two" &&
	cpu=$(($(job "$one" used.cpu_ms) + $(job "$two" used.cpu_ms))) && memory=$(job "$one" used.memory_bytes) && test "$cpu" -gt 0 && test "$memory" -gt 20000000
'

test_expect_success 'their sum, and the largest of their high-waters; what was not measured is null' '
	got=$(figure used.cpu_ms --by queue) && test "$got" -ge "$((cpu - 2))" && test "$got" -le "$((cpu + 2))" && test "$(figure used.memory_bytes --by queue)" = "$memory" && test "$(figure used.gpu_percent --by queue)" = null &&
	test "$(figure pods --by queue)" = 1 && gpuq report --by queue -o QUEUE,CPU_TIME,MAX_MEMORY,GPU_BUSY >out && says out "^a +0\.[0-9]+ +[0-9.]+ *MiB? +-$"
'

test_expect_success 'by user and flavor too; in the part of a day, in no other; after a restart' '
	test "$(gpuq report --by user --json | json used.cpu_ms)" = "$got" && test "$(gpuq report --by queue --since 1h --json | json used.cpu_ms)" = "$got" && gpuq report --by queue --since 2001-01-01 --until 2001-01-03 --json >out && test ! -s out &&
	kill_gpuqd && start_gpuqd --gpus 2 && test "$(figure used.cpu_ms --by queue)" = "$got" && test "$(figure used.cpu_ms --by queue --since 1h)" = "$got" && test "$(figure used.memory_bytes --by queue --since 1h)" = "$memory"
'

test_expect_success 'pods of which nothing is known add nothing' '
	stop_gpuqd && mv state old && start_fake && start_fake_gpuqd && c=$(submit --annotation=gpuq.test/hang=true --image i --gpus 1 --wrap true) && job_becomes "$c" RUNNING 60 && sleep 2 && gpuq cancel "$c" && job_becomes "$c" CANCELLED 60 && job_is "$c" used null && test "$(figure used)" = null && test "$(figure pods)" = 1
'

test_done
