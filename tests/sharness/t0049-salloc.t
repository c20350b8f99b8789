#!/bin/sh
test_description='salloc, and srun in it, in its job and in a job that runs'
. "$(dirname "$0")/lib.sh"

on_term() {
	timeout 60 /usr/bin/python3 "$test_source/tests/sharness/onterm.py" "$@"
}

test_expect_success 'start' '
	mkdir bin && for name in sbatch scancel salloc squeue srun; do
		ln -s "$test_build/gpuq/gpuq" bin/$name || return 1
	done && PATH=$PWD/bin:$PATH && export PATH && start_gpuqd && node=$(gpuq nodes --json | json name)
'

test_expect_success 'a command has the job: its variables, its devices, its exit code' '
	exits 3 salloc -J held -G 2 sh -c "env | sort >env; squeue -h -o \"%i %j %t\" >queue; sleep 2; exit 3" && test ! -s out &&
	says env "^CUDA_VISIBLE_DEVICES=0,1$" && says env "^SLURM_JOB_ID=1$" && says env "^SLURM_JOB_NODELIST=$node$" &&
	says env "^SLURM_JOB_NAME=held$" && says queue "^1 held R$" && head -n 1 err >first &&
	says first "^salloc: Granted job allocation 1$" && tail -n 1 err | says /dev/stdin "^salloc: Relinquishing job allocation 1$" &&
	job_becomes 1 FAILED && exits 0 salloc -Q sleep 3 && test ! -s err && job_becomes 2 COMPLETED
'

test_expect_success 'a command that ends before anybody has looked' '
	for n in 1 2 3 4 5 6; do timeout 60 salloc -Q true || return 1; done && wait_for 60 eval "test \$(in_queue) = 0"
'

test_expect_success 'srun in it: in the pod, with our directory and variables' '
	mkdir sub && cat >steps.sh <<-\END &&
	cd sub && export MINE="a b"
	srun sh -c "echo in \$GPUQ_JOB_ID \$CUDA_VISIBLE_DEVICES \$MINE; pwd"
	srun -n 2 -l sh -c "echo task \$SLURM_PROCID of \$SLURM_NTASKS"
	echo input | srun cat
	srun --export=NONE,ONLY=this sh -c "echo only \$ONLY \$MINE."
	srun -o "file-%t" -n 2 sh -c "echo \$SLURM_PROCID"
	srun sh -c "exit 7"
	echo "code $?"
	srun --gpus-per-task=1 true
	END
	exits 1 salloc -G 1 sh steps.sh && says out "^in 9 0 a b$" && says out "^$PWD/sub$" && says out "^0: task 0 of 2$" &&
	says out "^1: task 1 of 2$" && says out "^input$" && says out "^only this \.$" && says out "^code 7$" &&
	test "$(cat sub/file-0 sub/file-1 | tr -d "\n")" = 01 && says err "gpus-per-task"
'

test_expect_success 'a shell on a terminal' '
	on_term "[[\"# \", \"echo job \$SLURM_JOB_NAME\\n\"], [\"interactive\", \"exit 5\\n\"]]" env SHELL=/bin/sh PS1="# " salloc -G 1 >out &&
	says out "^job interactive" && says out "^\[exit 5, restored\]$"
'

test_expect_success 'who waits is told, and gives up as it is told' '
	full=$(sbatch --parsable -G 4 --wrap "sleep 300") && job_becomes "$full" RUNNING && exits 1 salloc -G 1 --immediate=2 true &&
	says err "^salloc: Pending job allocation" && says err "queued and waiting for resources" && says err "Requested nodes are busy" &&
	test "$(in_queue)" = 1 && { salloc -G 1 echo it ran >waited 2>waited.err & } && waiter=$! &&
	wait_for 60 says waited.err "waiting for resources" && scancel "$full" && wait $waiter && says waited "it ran" &&
	says waited.err "has been allocated resources"
'

test_expect_success 'a signal while it waits: no job is left' '
	full=$(sbatch --parsable -G 4 --wrap "sleep 300") && job_becomes "$full" RUNNING && rm -f waited.err && { salloc -G 1 true 2>waited.err & } && waiter=$! &&
	wait_for 60 says waited.err "waiting for resources" && kill -TERM $waiter && ! wait $waiter && says waited.err "revoked" &&
	wait_for 60 eval "test \$(in_queue) = 1" && scancel "$full"
'

test_expect_success 'the end of the job is told to the command' '
	{ salloc -J ended -G 1 sleep 300 2>ended.err & } && waiter=$! && wait_for 60 says ended.err "Granted" && scancel -n ended &&
	{ wait $waiter; test $? = 143; } && says ended.err "revoked" && ! grep Relinquishing ended.err
'

test_expect_success 'a salloc that is killed leaves no job behind' '
	{ salloc --lease=5s -J killed -G 1 sleep 20 2>killed.err & } && waiter=$! && wait_for 60 says killed.err "Granted" &&
	id=$(squeue -h -n killed -o %A) && kill -KILL $waiter &&
	wait_for 60 grep -q "job.lease job=$id" gpuqd.log && job_becomes "$id" CANCELLED
'

test_expect_success 'it may run nothing' '
	exits 0 salloc --no-shell -J bare -G 1 && id=$(squeue -h -n bare -o %A) && job_is "$id" state RUNNING &&
	exits 0 srun --jobid="$id" sh -c "echo \$GPUQ_JOB_ID" && test "$(cat out)" = "$id" && exits 4 srun --jobid="$id" sh -c "exit 4" &&
	on_term "[[\"# \", \"exit 6\\n\"]]" srun --jobid="$id" --pty env PS1="# " sh -i >term && says term "^\[exit 6, restored\]$" &&
	scancel "$id" && job_becomes "$id" CANCELLED && exits 1 srun --jobid="$id" true && says err "(does not run|not running)" &&
	exits 1 srun --jobid=999 true && says err "Invalid job id specified"
'

test_expect_success TWO_CPUS 'srun outside of a job: tasks, input, a terminal' '
	exits 0 srun -n 2 -l sh -c "echo of \$SLURM_NTASKS" && sort out >sorted && printf "0: of 2\n1: of 2\n" | test_cmp - sorted &&
	exits 1 srun -n 2 sh -c "exit \$SLURM_PROCID" && says out "task 1: Exited with exit code 1" &&
	exits 0 srun -n 2 -G 2 --gpus-per-task=1 sh -c "echo \$SLURM_PROCID \$CUDA_VISIBLE_DEVICES" && says out "^0 0$" && says out "^1 1$" &&
	seq 1 500 >in && srun cat <in >out && test_cmp in out &&
	on_term "[[\"# \", \"tty; exit 6\\n\"]]" srun -G 1 --pty env PS1="# " sh -i >term && says term "^/dev/pts/" && says term "^\[exit 6, restored\]$" &&
	exits 137 srun sh -c "kill -9 \$\$"
'

test_expect_success 'options that mean nothing here are said, those that would mislead are refused' '
	exits 0 srun --cpu-bind=none true && says err "^srun: warning: --cpu-bind is ignored" && exits 2 srun --multi-prog true && says err "error: --multi-prog is not offered" &&
	exits 2 salloc --x11 true && says err "error: --x11" && exits 1 srun --array=0-1 true
'

test_expect_success 'stop' '
	gpuq cancel --me >/dev/null && stop_gpuqd
'

test_done
