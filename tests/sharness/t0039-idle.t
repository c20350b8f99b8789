#!/bin/sh
test_description='what the devices of this machine do, as the driver tells it; AC-RAI-8 on the local cluster'
. "$(dirname "$0")/lib.sh"

fake_nvml=$test_build/tests/unit/.libs/fake_nvml.so
if ! [ -r "$fake_nvml" ]; then
	skip_all="$fake_nvml is not there; run make check-build first"
	test_done
fi
mkdir lib && ln -s "$fake_nvml" lib/libnvidia-ml.so.1
FAKE_NVML=$PWD/devices
FAKE_NVML_USE=$PWD/use
printf 'GPU-a 1000 Fake A\nGPU-b 1000 Fake A\n' >devices

cat >site.yaml <<'END'
version: 1
queues:
- {name: lab, idle: 4s}
END
printf 'metrics_interval: 250ms\nidle_window: 2s\n' >gpuqd.yaml

# use PERCENT...: what each device does from now on
use() {
	for use_percent; do echo "$use_percent"; done >use.new && mv use.new use
}

start_with_driver() {
	LD_LIBRARY_PATH=$PWD/lib FAKE_NVML=$FAKE_NVML FAKE_NVML_USE=$FAKE_NVML_USE start_gpuqd --gpus -1 --config gpuqd.yaml --site "$PWD/site.yaml"
}

measured() {
	gpuq status --json | json "measured.$1"
}

# Its figures are those of the last round of measuring.
doctor_says() {
	exits 0 gpuq doctor && says out "$1"
}

lasts() {
	lasts_until=$(($(date +%s) + $1))
	shift
	while [ "$(date +%s)" -lt $lasts_until ]; do
		"$@" || return 1
		sleep 0.2
	done
}

test_expect_success 'a job that does nothing with its devices is stopped by the signals of a time limit' '
	use 0 0 && start_with_driver && wait_for 60 eval "test \$(free_gpus) = 2" &&
	a=$(sh_job "trap \"echo told; exit 3\" TERM; while :; do sleep 0.1; done" -p lab -g 1 -o "$PWD/a.out") && job_becomes "$a" RUNNING &&
	b=$(sh_job "exec sleep 600" -p lab -g 1) && job_becomes "$b" RUNNING &&
	use 0 40 && wait_for 60 job_is "$b" use.percent 40.0 && job_becomes "$a" TIMEOUT && job_is "$a" end_cause idle && says a.out told &&
	exits 251 gpuq wait "$a" && job_is "$b" state RUNNING && test "$(measured source)" = nvml && test "$(measured trouble)" = null &&
	wait_for 60 doctor_says "measured .*.nvml.: 1 device of 1 job\$"
'

test_expect_success 'a device that does not tell is not idle; nor is half of one whose other half works' '
	use 0 - && wait_for 60 eval "gpuq status $b --json | json use.idle_s | grep -qx 0" && lasts 6 job_is "$b" state RUNNING &&
	use 5 0 && half=$(sh_job "exec sleep 600" -p lab -g 0.5) && other=$(sh_job "exec sleep 600" -p lab -g 0.5) &&
	job_becomes "$half" RUNNING && job_becomes "$other" RUNNING && job_becomes "$b" TIMEOUT &&
	wait_for 60 job_is "$half" use.percent 5.0 && wait_for 60 job_is "$other" use.percent 5.0 && use 0 0 && job_becomes "$half" TIMEOUT && job_becomes "$other" TIMEOUT
'

test_expect_success 'a retry for time limits is none for idle devices, and a job without devices is never idle' '
	a=$(sh_job "exec sleep 600" -p lab -g 1 --retry=3) && none=$(sh_job "exec sleep 600" -p lab -g 0) && job_becomes "$a" TIMEOUT &&
	job_is "$a" attempt 0 && job_is "$none" state RUNNING && job_is "$none" use null
'

test_expect_success 'the process that asks the driver ends with the daemon' '
	pgrep -P "$gpuqd_pid" -f -- "--shepherd --use" >asking && test -s asking && stop_gpuqd &&
	wait_for 60 eval "! kill -0 \$(cat asking)"
'

test_expect_success 'a driver that is not there: the rule is not applied, and that is said' '
	rm lib/libnvidia-ml.so.1 && start_with_driver && wait_for 60 eval "measured trouble | grep -q libnvidia-ml.so.1" &&
	gpuq status >out && says out "Idle rules *not everywhere: the library of the NVIDIA driver" && stop_gpuqd &&
	start_gpuqd --gpus 2 --config gpuqd.yaml && wait_for 60 eval "measured trouble | grep -q declared" &&
	gpuq status >out && says out "Idle rules *not applied: devices that are declared"
'

test_done
