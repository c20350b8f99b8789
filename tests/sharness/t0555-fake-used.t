#!/bin/sh
test_description='what a job on the fake cluster used, by pages of metrics that name its pods'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# amount NAME POD LABELS VALUE: a line of a page about the container of a pod
amount() {
	echo "container_$1{container=\"main\",namespace=\"default\",pod=\"$2\"$3} $4"
}

# page: standard input is the page from now on
page() {
	cat >page.new && mv page.new page
}

start_metrics() {
	/usr/bin/python3 "$test_source/tests/sharness/metrics_page.py" "$PWD/metrics.port" "$PWD/page" </dev/null >>metrics.log 2>&1 3>&- 4>&- 5>&- &
	wait_for 60 test -s metrics.port
}

# rounds: another two have been read
rounds() {
	rounds_now=$(grep -c "GET /page" metrics.log) && wait_for 60 eval "test \$(grep -c 'GET /page' metrics.log) -ge $((rounds_now + 2))"
}

# ends ID: it is asked to end, and does
ends() {
	gpuq cancel "$1" && job_becomes "$1" CANCELLED 60
}

test_expect_success 'CPU time of both kinds, the largest memory, I/O of all disks, use and memory of its devices' '
	page </dev/null && start_metrics && printf "metrics: [\"http://127.0.0.1:%s/page\"]\nmetrics_interval: 300ms\n" "$(cat metrics.port)" >gpuqd.yaml &&
	start_fake --nodes 1 --gpus 4 && start_fake_gpuqd --config "$PWD/gpuqd.yaml" && a=$(fake_job "hang=true" -g 1 --pods 2) && job_becomes "$a" RUNNING && p=$(job "$a" pods.0.name) && q=$(job "$a" pods.1.name) &&
	{
		amount cpu_usage_seconds_total "$p" ",cpu=\"total\"" 70 && amount cpu_user_seconds_total "$p" "" 60.5 && amount cpu_system_seconds_total "$p" "" 9.5 &&
		amount memory_working_set_bytes "$p" "" 3e8 && amount fs_reads_bytes_total "$p" ",device=\"/dev/sda\"" 100 && amount fs_reads_bytes_total "$p" ",device=\"/dev/sdb\"" 23 &&
		amount fs_writes_bytes_total "$p" "" 7 && amount cpu_user_seconds_total "$q" "" 1 && amount cpu_system_seconds_total "$q" "" 0 && amount memory_working_set_bytes "$q" "" 4e8 &&
		amount cpu_user_seconds_total "$p-9" "" 1000 && echo "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-0\",pod=\"$p\"} 40" && echo "DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-0\",pod=\"$p\"} 512"
	} | page && rounds && { amount memory_working_set_bytes "$q" "" 1e6 && amount cpu_user_seconds_total "$q" "" 2; } | page && rounds && job_is "$a" used null && ends "$a" &&
	job_is "$a" used.user_ms 62500 && job_is "$a" used.system_ms 9500 && job_is "$a" used.cpu_ms 72000 && job_is "$a" used.memory_bytes 400000000 && job_is "$a" used.read_bytes 123 &&
	job_is "$a" used.written_bytes 7 && job_is "$a" used.gpu_memory_bytes 536870912 && job_is "$a" used.gpu_percent 40.0
'

test_expect_success 'where only the sum is known, that; what is not known is null, not 0' '
	b=$(fake_job "hang=true") && job_becomes "$b" RUNNING && p=$(job "$b" pods.0.name) && amount cpu_usage_seconds_total "$p" "" 30 | page && rounds && ends "$b" &&
	job_is "$b" used.cpu_ms 30000 && for key in user_ms system_ms memory_bytes read_bytes written_bytes gpu_percent gpu_memory_bytes; do job_is "$b" "used.$key" null || return 1; done &&
	c=$(fake_job "hang=true") && job_becomes "$c" RUNNING && page </dev/null && ends "$c" && job_is "$c" used null
'

test_expect_success 'a pod of another namespace with its name says nothing' '
	api POST /namespaces "{\"metadata\": {\"name\": \"team-a\"}}" >/dev/null && printf "version: 1\nqueues: [{name: team, namespace: team-a}]\n" >site.yaml && gpuq apply -f site.yaml && d=$(fake_job "hang=true" -p team) && job_becomes "$d" RUNNING 60 &&
	amount cpu_usage_seconds_total "$(job "$d" pods.0.name)" "" 30 | page && rounds && ends "$d" && job_is "$d" used null
'

test_expect_success 'it is stored, and shown by status, history, usage, sacct and seff' '
	mkdir bin && for name in sacct seff; do ln -s "$test_build/gpuq/gpuq" bin/$name || return 1; done && PATH=$PWD/bin:$PATH && export PATH &&
	before=$(job "$a" used) && kill_gpuqd && start_fake_gpuqd --config "$PWD/gpuqd.yaml" && test "$(job "$a" used)" = "$before" &&
	gpuq status "$a" >out && says out "^Used CPU +1:12 .user 62.50 s, system 9.50 s" && says out "^Used memory +at most 381" && says out "^GPU memory +at most 512" &&
	gpuq status "$b" >out && says out "^Used CPU +0:30" && ! grep -E "^Used CPU.*user" out && ! grep "Used memory" out &&
	gpuq history -h -j "$a,$b" -o JOBID,CPU_TIME,MAX_MEMORY,GPU_BUSY,GPU_MEMORY >out && says out "$a +1:12 +381.*iB +40 +512.*iB$" && says out "$b +0:30 +- +- +-$" &&
	gpuq usage -j "$a" >out && says out "GPU memory" &&
	sacct -nPX -j "$a,$b" -o JobID,TotalCPU,UserCPU,SystemCPU,MaxRSS,AveRSS,Elapsed,ReqTRES,AllocTRES,TRESUsageInTot >out && ! grep "||" out && ! grep "|$" out &&
	says out "^$a[|]01:12.000[|]01:02.500[|]00:09.500[|]390625K" && says out "gres/gpumem=512M,gres/gpuutil=40" && says out "^$b[|]00:30.000" && seff "$b" >out && says out "CPU Utilized: 00:00:30"
'

test_expect_success 'kubelet_metrics: a kubelet that cannot be asked is named; doctor names the right that is missing' '
	kill_gpuqd && stop_fake && rm -rf state && printf "kubelet_metrics: true\nmetrics_interval: 300ms\n" >gpuqd.yaml && start_fake --nodes 1 --gpus 4 --deny get/nodes/proxy && start_fake_gpuqd --config "$PWD/gpuqd.yaml" &&
	e=$(fake_job "hang=true") && job_becomes "$e" RUNNING && wait_for 60 eval "gpuq diag --json | json measured.trouble | grep kubelet" && { gpuq doctor >out || :; } &&
	says out "^warning +rights +kubelet_metrics: .* may not get nodes/proxy" && ends "$e"
'

no_harm_was_done

test_done
