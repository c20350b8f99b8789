# slurm.sh - gpuq beside Slurm, in one run on one machine; sourced by run
#
# Debian's slurmctld without any slurmd: 1250 nodes of eight CPUs in the state CLOUD, one CPU for one GPU, a
# partition that is down, so that nothing is scheduled; our jobs are held. Slurm acknowledges a job before its
# table is saved; gpuqd when it is on disk. JOBS=100000 is how many wait when lists, memory and restart are
# measured, FILL=400 how many seconds may go into that for each.

slurm_packages='slurmctld slurm-client slurmd libslurm-dev'

slurm_ready() {
	command -v slurmctld >/dev/null && command -v sbatch >/dev/null && [ -e /usr/include/slurm/slurm.h ]
}

slurm_install() {
	slurm_ready && return
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || {
		echo "slurm: skipped: needs the Debian packages $slurm_packages (root installs them here by itself)"
		return 1
	}
	# shellcheck disable=SC2086 # words
	DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y --no-install-recommends $slurm_packages >"$dir/apt" 2>&1
	slurm_ready && return
	echo "slurm: skipped: $slurm_packages cannot be installed: $(tail -n 1 "$dir/apt")"
	return 1
}

slurm_config() {
	mkdir -p "$dir/slurm/state"
	cat >"$dir/slurm/slurm.conf" <<-END
		ClusterName=bench
		SlurmctldHost=$(hostname)(127.0.0.1)
		SlurmctldPort=$((20000 + $$ % 20000))
		SlurmdPort=$((40000 + $$ % 20000))
		SlurmUser=root
		AuthType=auth/none
		CredType=cred/none
		StateSaveLocation=$dir/slurm/state
		SlurmdSpoolDir=$dir/slurm/spool
		SlurmctldPidFile=$dir/slurm/pid
		SlurmctldLogFile=$dir/slurm/log
		SlurmctldDebug=error
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		MaxJobCount=300000
		MinJobAge=2
		AccountingStorageType=accounting_storage/none
		JobCompType=jobcomp/none
		JobAcctGatherType=jobacct_gather/none
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SwitchType=switch/none
		MpiDefault=none
		SlurmdTimeout=0
		SuspendProgram=/bin/true
		ResumeProgram=/bin/true
		SuspendTime=INFINITE
		ResumeTimeout=65000
		SlurmctldParameters=idle_on_node_suspend
		PrivateData=cloud
		SchedulerParameters=default_queue_depth=200000,partition_job_depth=0,sched_interval=1,sched_min_interval=0,max_sched_time=30,batch_sched_delay=0,max_rpc_cnt=0,defer
		NodeName=n[0-1249] CPUs=8 RealMemory=786432 NodeAddr=127.0.0.1 State=CLOUD
		PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=DOWN
	END
	SLURM_CONF=$dir/slurm/slurm.conf
	export SLURM_CONF
}

# start_slurm [-c]: until it answers
start_slurm() {
	slurmctld -D "$@" >>"$dir/slurm/out" 2>&1 &
	slurm_pid=$!
	pids="$pids $slurm_pid"
	for _ in $(seq 600); do
		squeue -h -j 1 -o %i >/dev/null 2>"$dir/slurm/answer" && return
		! grep -q 'Invalid job id' "$dir/slurm/answer" || return 0
		kill -0 "$slurm_pid" 2>/dev/null || break
		sleep 0.01
	done
	echo "slurm: skipped: slurmctld does not answer: $(tail -n 1 "$dir/slurm/log" "$dir/slurm/out" 2>/dev/null | tail -n 1)"
	return 1
}

# beside WHAT OURS UNIT NAME THEIRS AIM
beside() {
	row "$1" "$2" "$3" "$4" "$5" "$6"
}

us() { # COMMAND...: microseconds of the fastest of three
	us_best=
	for _ in 1 2 3; do
		us_begin=$(date +%s%N)
		"$@" >/dev/null 2>&1 || :
		us_end=$(date +%s%N)
		us_took=$(((us_end - us_begin) / 1000))
		[ -n "$us_best" ] && [ "$us_best" -le $us_took ] || us_best=$us_took
	done
	echo $us_best
}

# many COMMAND...: eight at once, the sum of what they print
many() {
	many_pids=
	for k in 1 2 3 4 5 6 7 8; do
		"$@" >"$dir/many.$k" 2>>"$dir/log" &
		many_pids="$many_pids $!"
	done
	# shellcheck disable=SC2086 # words
	wait $many_pids || :
	cat "$dir"/many.[1-8] | awk '{ n += $1 } END { print n + 0 }'
}

serial() { # COMMAND...: microseconds for each of a hundred, one after the other
	serial_begin=$(date +%s%N)
	for _ in $(seq 100); do "$@" >/dev/null 2>&1 || :; done
	echo $((($(date +%s%N) - serial_begin) / 100000))
}

slurm_jobs() {
	squeue -h -o %i 2>/dev/null | wc -l
}

our_jobs() {
	"$gpuq" --server "$server" status --json | sed 's/.*"PENDING":\([0-9]*\).*/\1/'
}

fill_both() { # N
	fill_until=$(($(date +%s) + ${FILL:-400}))
	fill_left=$(($1 - $(slurm_jobs)))
	[ $fill_left -le 0 ] || timeout "${FILL:-400}" "$dir/slurm_submit" -$fill_left >/dev/null || :
	fill_until=$(($(date +%s) + ${FILL:-400}))
	while [ "$(our_jobs)" -lt "$(slurm_jobs)" ] && [ "$(date +%s)" -lt $fill_until ]; do
		"$submit" "$server" 1 128 >/dev/null
	done
}

resident() { # PID WHAT: MiB
	awk -v what="$2" '$1 == what ":" { print $2 / 1024 }' "/proc/$1/status"
}

bench_slurm() {
	slurm_install || return 0
	slurm_config
	"${CC:-cc}" -O2 -o "$dir/slurm_submit" "$top_srcdir/tests/bench/slurm_submit.c" -lslurm 2>"$dir/cc" || {
		echo "slurm: skipped: slurm_submit.c does not compile: $(head -n 1 "$dir/cc")"
		return 0
	}
	start_slurm -c || return 0
	start_gpuqd ours --cluster local --gpus 8
	printf '#!/bin/sh\n#SBATCH -H -J bench\nsleep 1\n' >"$dir/job.sh"
	echo "Slurm is $(slurmctld -V), load $(cut -d' ' -f1 /proc/loadavg)"

	theirs=$("$dir/slurm_submit" "$seconds") ours=$("$submit" "$server" "$seconds" 1)
	beside "submits, one client" "$ours" "jobs/s" "libslurm" "$theirs" ">= 2.5"
	theirs=$(many "$dir/slurm_submit" "$seconds") ours=$(many "$submit" "$server" "$seconds" 1)
	beside "submits, eight clients" "$ours" "jobs/s" "libslurm, eight processes" "$theirs" ">= 2.5"
	theirs=$(serial sbatch "$dir/job.sh") ours=$(serial "$gpuq" --server "$server" submit "$dir/job.sh")
	beside "one after the other, CLI" "$ours" "us" "sbatch" "$theirs" "<= 0.35"

	fill_both "${JOBS:-100000}"
	theirs=$(slurm_jobs) ours=$(our_jobs)
	beside "jobs that wait" "$ours" "jobs" "jobs that wait" "$theirs" "1"
	theirs=$(us squeue -h) ours=$(us "$gpuq" --server "$server" queue -h)
	beside "list of all" "$ours" "us" "squeue" "$theirs" "<= 0.15"
	theirs=$(us squeue -h -u nobody) ours=$(us "$gpuq" --server "$server" queue -h -u nobody)
	beside "list of a user without any" "$ours" "us" "squeue -u" "$theirs" "<= 0.6"
	theirs=$(us squeue -h -j 77) ours=$(us "$gpuq" --server "$server" queue -h -j 77)
	beside "one job" "$ours" "us" "squeue -j" "$theirs" "<= 0.6"
	theirs=$(resident "$slurm_pid" VmRSS)
	beside "memory beyond the map" "$(resident "$pid" RssAnon)" "MiB" "slurmctld" "$theirs" "<= 0.2"
	beside "memory with the map" "$(resident "$pid" VmRSS)" "MiB" "slurmctld" "$theirs" "-"

	sleep 6 # slurmctld saves its table every few seconds
	kill -KILL "$slurm_pid" "$pid"
	wait "$slurm_pid" "$pid" 2>/dev/null || :
	theirs_begin=$(date +%s%N)
	start_slurm || return 0
	theirs=$((($(date +%s%N) - theirs_begin) / 1000))
	ours_begin=$(date +%s%N)
	"$gpuqd" --state "$dir/ours" --listen "unix:$dir/sock" --cluster local --gpus 8 --log-level warn 2>>"$dir/log" &
	pid=$!
	pids="$pids $pid"
	until "$gpuq" --server "$server" queue -h -j 77 >/dev/null 2>&1; do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.005
	done
	ours=$((($(date +%s%N) - ours_begin) / 1000))
	beside "kill -9, restart to the first answer" "$ours" "us" "slurmctld" "$theirs" "<= 0.1"
	beside "jobs after that" "$(our_jobs)" "jobs" "slurmctld" "$(slurm_jobs)" "1"
	stop_gpuqd
	kill "$slurm_pid"
	wait "$slurm_pid" 2>/dev/null || :
}
