#!/bin/sh
test_description='facts of jobs as Slurm shows them: the command, batch or not, files, who cancelled'
. "$(dirname "$0")/lib.sh"

# value PATH: of the one JSON object in out
value() {
	tr -d "\n" <out | json "$1"
}

test_expect_success 'start' '
	mkdir bin && for name in sbatch salloc scancel scontrol sacct sinfo squeue srun; do
		ln -s "$test_build/gpuq/gpuq" bin/$name || return 1
	done && PATH=$PWD/bin:$PATH && export PATH && start_gpuqd && printf "#!/bin/sh\nsleep 300\n" >train.sh && mkdir -p sub
'

test_expect_success 'the command of a script is its path, absolute, and its arguments' '
	a=$(sbatch --parsable --hold -i /dev/zero ./train.sh --lr 0.1 "two words") && scontrol show job "$a" >out &&
	says out "^ +Command=$PWD/train.sh --lr 0.1 two words$" && says out "^ +Restarts=0 BatchFlag=1 ExitCode=0:0$" &&
	says out "^ +StdIn=/dev/zero$" && says out "^ +StdOut=$PWD/slurm-$a.out$" &&
	test "$(squeue -h -j "$a" -o %o)" = "$PWD/train.sh --lr 0.1 two words" && test "$(squeue -h -j "$a" --Format=command:300 | sed "s/ *$//")" = "$PWD/train.sh --lr 0.1 two words" &&
	squeue -j "$a" --json >out && test "$(value jobs.0.command)" = "$PWD/train.sh --lr 0.1 two words" && test "$(value jobs.0.batch_flag)" = true &&
	test "$(value jobs.0.standard_input)" = /dev/zero && job_is "$a" stdin /dev/zero && job_is "$a" batch true &&
	b=$(sbatch --parsable --hold -D "$PWD/sub" -i in.%j "$PWD/train.sh") && scontrol show job "$b" >out && says out "Command=$PWD/train.sh$" && says out "StdIn=$PWD/sub/in.$b$"
'

test_expect_success 'text from elsewhere is no command: --wrap, standard input, a job file' '
	w=$(sbatch --parsable --hold --wrap true) && s=$(sbatch --parsable --hold <train.sh) && printf "command: [sleep, 300]\nhold: true\n" >job.yaml && y=$(submit job.yaml) &&
	for id in "$w" "$s" "$y"; do
		scontrol show job "$id" >out && says out "Command=\(null\)$" && says out "BatchFlag=1" && says out "StdIn=/dev/null$" || return 1
		test "$(squeue -h -j "$id" -o %o)" = "(null)" && job_is "$id" command null || return 1
	done
'

test_expect_success 'what is attended is no batch job' '
	{ srun -Q -J attended sleep 300 >srun.out 2>&1 & run=$!; } && wait_for 60 sh -c "squeue -h -n attended -t R -o %A | grep -q ." &&
	r=$(squeue -h -n attended -o %A) && scontrol show job "$r" >out && says out "BatchFlag=0" && says out "Command=sleep 300$" && ! grep Std out &&
	squeue -j "$r" --json >out && test "$(value jobs.0.batch_flag)" = false && scancel "$r" && { wait "$run" || :; } &&
	salloc -Q scontrol show job >all && says all "BatchFlag=0" && says all "Command=\(null\)$"
'

test_expect_success 'it outlives a restart, an update, and the end, and a resubmission has it' '
	kill_gpuqd && start_gpuqd && scontrol update jobid="$a" comment=x && job_is "$a" command "$PWD/train.sh --lr 0.1 two words" && job_is "$a" batch true &&
	job_is "$r" batch false && scancel "$a" && job_becomes "$a" CANCELLED && job_is "$a" command "$PWD/train.sh --lr 0.1 two words" &&
	c=$(gpuq resubmit --parsable "$b") && job_is "$c" command "$PWD/train.sh" && scancel "$c"
'

test_expect_success 'a long command is cut, not refused' '
	d=$(sbatch --parsable --hold ./train.sh "$(printf "%02000d" 0)") && test "$(squeue -h -j "$d" -o %o | wc -c)" -eq 1025
'

test_done
