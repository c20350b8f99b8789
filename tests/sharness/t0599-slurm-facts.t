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

test_expect_success 'files of array elements are named by their own numbers' '
	e=$(sbatch --parsable -c 1 -a 3 -o "f-%j-%A-%a-%J" --wrap "echo \$SLURM_JOB_ID") && job_becomes "${e}_3" COMPLETED && n=$(job "${e}_3" element_id) && test "$n" != "$e" &&
	test "$(cat "f-$n-$e-3-$n.batch")" = "$n" && scontrol show job "${e}_3" >out && says out "StdOut=$PWD/f-$n-$e-3-$n.batch$" &&
	gpuq queue -h --all -j "${e}_3" -o STDOUT:300 >out && says out "f-$n-$e-3-$n.batch"
'

test_expect_success 'sacct says who cancelled a job, squeue does not' '
	uid=$(id -u) && test "$(sacct -X -n -P -j "$a" -o State)" = "CANCELLED by $uid" && sacct -X -n -j "$a" -o State >out && says out "^CANCELLED\+ *$" &&
	sacct -n -P -j "$r" -o JobID,State >out && says out "^$r\|CANCELLED by $uid$" && says out "^$r.batch\|CANCELLED$" && test "$(squeue -h -t all -j "$a" -o %T)" = CANCELLED &&
	job_is "$a" cancelled_by "$(id -un)" && job_is "${e}_3" cancelled_by null && sacct --json -j "$a" >out && test "$(value jobs.0.kill_request_user)" = "$(id -un)" && test "$(value jobs.0.state.current.0)" = CANCELLED
'

test_expect_success 'lines of an array name its elements, those that never started as one' '
	g=$(sbatch --parsable -H -c 1 -a 1-6%2 --wrap true) && scancel "${g}_3" && test "$(sacct -n -P -j "$g" -o JobID,State | sort)" = "$(printf "%s\n" "${g}_3|CANCELLED by $uid" "${g}_[1-2,4-6%2]|PENDING")" &&
	scancel "${g}_2" && scancel "$g" && job_becomes "${g}_2" CANCELLED &&
	printf "%s|CANCELLED by $uid\n" "${g}_2" "${g}_3" "${g}_[1,4-6%2]" | sort >want && sacct -n -P -j "$g" -o JobID,State | sort >got && test_cmp want got &&
	test "$(squeue -h -t all -j "$g" -o "%i %T" | sort)" = "$(printf "%s CANCELLED\n" "${g}_2" "${g}_3" "${g}_[1,4-6%2]" | sort)" &&
	kill_gpuqd && start_gpuqd && sacct -n -P -j "$g" -o JobID,State | sort >got && test_cmp want got &&
	h=$(sbatch --parsable -H -c 1 -a 1-2 --wrap true) && scancel "${h}_1" && scancel "${h}_2" && job_becomes "${h}_2" CANCELLED &&
	test "$(sacct -n -P -j "$h" -o JobID | sort)" = "$(printf "%s\n" "${h}_1" "${h}_2")"
'

test_expect_success 'elements that ended by themselves do not lend their state to the rest' '
	k=$(sbatch --parsable -c 1 -a 1-4%1 --wrap "[ \$SLURM_ARRAY_TASK_ID != 1 ] && sleep 300; exit 3") && job_becomes "${k}_1" FAILED && job_becomes "${k}_2" RUNNING && scancel "$k" && job_becomes "${k}_2" CANCELLED &&
	sacct -X -n -P -j "$k" -o JobID,State | sort >got && printf "%s\n" "${k}_1|FAILED" "${k}_2|CANCELLED by $uid" "${k}_[3-4%1]|CANCELLED by $uid" | sort >want && test_cmp want got &&
	sacct --json -j "$k" >out && tr -d "\n" <out | json jobs >all && grep -q "3-4" all
'

test_expect_success 'EndTime of a job that runs is that of its time limit, as in squeue' '
	r=$(sbatch --parsable -t 30 --wrap "sleep 60") && job_becomes "$r" RUNNING && scontrol show job "$r" >out && end=$(squeue -h -j "$r" -o %e) &&
	says out "EndTime=$end$" && scancel "$r" && r=$(sbatch --parsable -t 30 -H --wrap true) && scontrol show job "$r" >out && says out "EndTime=Unknown$" && scancel "$r"
'

test_done
