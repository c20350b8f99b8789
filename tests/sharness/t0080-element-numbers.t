#!/bin/sh
test_description='elements of arrays have numbers of their own, and signals reach the steps'
. "$(dirname "$0")/lib.sh"

# Two elements of a CPU each run at once.
test_have_prereq TWO_CPUS || {
	skip_all='this machine has one CPU'
	test_done
}

# number ID: the own number of an element
number() {
	job "$1" element_id
}

test_expect_success 'start' '
	mkdir bin && for name in sbatch scancel scontrol sacct sinfo squeue srun; do
		ln -s "$test_build/gpuq/gpuq" bin/$name || return 1
	done && PATH=$PWD/bin:$PATH && export PATH && start_gpuqd
'

test_expect_success 'an element has its number from its first start, and none before' '
	cat >numbers.sh <<-\END &&
	#!/bin/sh
	#SBATCH -a 3,5,7%2 -c 1 --mem 64M
	echo "$SLURM_JOB_ID $SLURM_JOBID $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID"
	env | grep "^SLURM_" | sort >env.$SLURM_ARRAY_TASK_ID
	until [ -e go ]; do sleep 0.05; done
	END
	a=$(sbatch --parsable -o "out.%a" numbers.sh) && job_becomes "${a}_3" RUNNING && job_becomes "${a}_5" RUNNING &&
	job_is "${a}_7" element_id null && x=$(number "${a}_3") && y=$(number "${a}_5") &&
	test "$x" -gt "$a" && test "$y" -gt "$a" && test "$x" != "$y" &&
	wait_for 60 test -s env.3 && test "$(cat out.3)" = "$x $x $a 3" && wait_for 60 test -s env.5 && test "$(cat out.5)" = "$y $y $a 5" &&
	last=$(submit --hold --cpus 0 --wrap true) && test "$last" -gt "$y"
'

test_expect_success 'sbatch has its list of variables' '
	for name in JOB_UID JOB_GID SUBMIT_HOST JOB_START_TIME CLUSTER_NAME NTASKS TASKS_PER_NODE GTIDS PROCID RESTART_COUNT; do
		says env.3 "^SLURM_$name=." || return 1
	done &&
	says env.3 "^SLURM_CPUS_ON_NODE=1$" && says env.3 "^SLURM_JOB_CPUS_PER_NODE=1$" && says env.3 "^SLURM_MEM_PER_NODE=64$" &&
	! grep "^SLURM_MEM_PER_[CG]PU=" env.3 && says env.3 "^SLURM_JOB_UID=$(id -u)$" && says env.3 "^SLURM_SUBMIT_HOST=$(uname -n)$" &&
	! grep GPUS_PER_NODE env.3 && id=$(sbatch --parsable -G 2 -t 10 -o gpus.out --wrap "env") && exits 0 gpuq wait "$id" &&
	says gpus.out "^SLURM_GPUS=2$" && says gpus.out "^SLURM_GPUS_PER_NODE=2$" && start=$(sed -n "s/^SLURM_JOB_START_TIME=//p" gpus.out) &&
	says gpus.out "^SLURM_JOB_END_TIME=$((start + 600))$"
'

test_expect_success 'every command takes the number' '
	test "$(squeue -h -j "$x" -o "%i %A %F %K")" = "${a}_3 $x $a 3" && test "$(squeue -h -O JobID:1 -j "$x")" != "" &&
	scontrol show job "$x" >out && says out "^JobId=$x ArrayJobId=$a ArrayTaskId=3 " && job_is "$x" array_index 3 &&
	gpuq why "$x" >out && gpuq events "$x" >out && says out "start" && gpuq queue -h -j "$x" -o JOBID >out && says out "${a}_3" &&
	gpuq update "$x" nice=5 && job_is "${a}_3" nice 5 && job_is "${a}_5" nice 0 &&
	scontrol update jobid="$x" timelimit=30 && job_is "${a}_3" time_limit_s 1800 &&
	after=$(submit --cpus 0 -d "afterok:$x" --wrap true) && job_is "$after" depends "[\"afterok:${a}_3\"]" &&
	scancel "$y" && job_becomes "${a}_5" CANCELLED && job_becomes "${a}_7" RUNNING
'

test_expect_success 'it survives a restart, a requeue and the end' '
	kill_gpuqd && start_gpuqd && job_is "${a}_3" element_id "$x" && job_is "$x" state RUNNING && job_is "$y" state CANCELLED &&
	z=$(number "${a}_7") && scontrol requeue "$z" && wait_for 60 job_is "${a}_7" attempt 1 && job_becomes "${a}_7" RUNNING && job_is "${a}_7" element_id "$z" &&
	touch go && exits 252 gpuq wait --timeout 60s "$a" && exits 0 gpuq wait "$x" && job_becomes "$after" COMPLETED &&
	test "$(sacct -X -n -P -j "$x" -o JobID,JobIDRaw,State)" = "${a}_3|$x|COMPLETED" && gpuq history -h -j "$y" -o JOBID >out && says out "${a}_5" &&
	exits 0 scancel "$x" && exits 1 gpuq cancel "$x" && says err "ended" && exits 254 gpuq wait 4000000
'

test_expect_success 'a signal reaches the steps of srun, not the shell, and srun stays' '
	cat >step.sh <<-\END &&
	#!/bin/sh
	srun sh -c "trap \"echo told; exit 3\" USR2; touch ready.$SLURM_JOB_ID; while :; do sleep 0.05; done"
	echo "code $?"
	END
	id=$(sbatch --parsable -o step.out step.sh) && wait_for 60 test -e "ready.$id" && scancel -s USR2 "$id" &&
	exits 0 gpuq wait --timeout 60s "$id" && says step.out "^told$" && says step.out "^code 3$" &&
	id=$(sbatch --parsable -o pass.out --wrap "srun sh -c \"trap \\\"echo passed; exit 4\\\" USR1; touch up; while :; do sleep 0.05; done\" & until [ -e up ]; do sleep 0.05; done; kill -USR1 \$!; wait \$!; echo code \$?") &&
	exits 0 gpuq wait --timeout 60s "$id" && says pass.out "^passed$" && says pass.out "^code 4$"
'

test_expect_success 'checkpoints of jobs signalled at once: each requeues itself, and none fails' '
	cat >save.sh <<-\END &&
	#!/bin/sh
	#SBATCH -a 1-6 -o save.%a
	srun sh -c '\''
	[ "$SLURM_RESTART_COUNT" = 0 ] || { echo again; exit 0; }
	trap "scontrol requeue $SLURM_JOB_ID; exit 255" USR2
	touch saver.$SLURM_ARRAY_TASK_ID
	while :; do sleep 0.05; done'\''
	END
	id=$(sbatch --parsable --cpus 0 save.sh) && for k in 1 2 3 4 5 6; do wait_for 60 test -e saver.$k || return 1; done &&
	scancel -s USR2 "$id" && exits 0 gpuq wait --timeout 60s "$id" && test "$(cat save.? | grep -c again)" = 6 &&
	test "$(sacct -X -n -P -j "$id" -o State,Restarts | sort | uniq -c | tr -s " ")" = " 6 COMPLETED|1"
'

test_done
