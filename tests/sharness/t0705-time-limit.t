#!/bin/sh
test_description='a job that is ended is told of in the words of Slurm: in the output of a script, and by srun'
. "$(dirname "$0")/lib.sh"

for name in sbatch srun scancel scontrol; do
	mkdir -p bin && ln -s "$test_build/gpuq/gpuq" bin/$name
done
PATH=$PWD/bin:$PATH && export PATH

# ended FILE ID WHY: its last line says so
ended() {
	wait_for 20 eval "grep -q CANCELLED '$1'" && cat "$1" && test "$(grep -c slurmstepd "$1")" = 1 &&
		grep -Eq "^slurmstepd: error: \*\*\* JOB $2 ON [^ ]+ CANCELLED AT [0-9]{4}-[0-9][0-9]-[0-9][0-9]T[0-9:]{8}$3 \*\*\*$" "$1"
}

# begun OPTION...: one that waits for its end
begun() {
	id=$(sbatch --parsable "$@" <script.sh) && job_becomes "$id" RUNNING && wait_for 20 eval "gpuq logs $id | grep -q begun"
}

test_expect_success 'start' '
	start_gpuqd --gpus 1 && printf "#!/bin/sh\necho begun\nexec sleep 100\n" >script.sh
'

test_expect_success 'the time limit, in the file of its output, of its errors, and in the logs' '
	begun -t 0:02 && ended "slurm-$id.out" "$id" " DUE TO TIME LIMIT" && exits 251 gpuq wait "$id" && begun -t 0:02 -o out.txt -e err.txt && ended err.txt "$id" " DUE TO TIME LIMIT" &&
	! grep slurmstepd out.txt && printf "#!/bin/sh\n#SBATCH -t 0:01\nexec sleep 100\n" >plain.sh && id=$(submit plain.sh) && exits 251 gpuq wait "$id" && gpuq logs "$id" >got && ended got "$id" " DUE TO TIME LIMIT"
'

test_expect_success 'it is cancelled, requeued, preempted; an element of an array has its number' '
	begun && exits 0 scancel "$id" && ended "slurm-$id.out" "$id" "" && begun --open-mode=append && exits 0 scontrol requeue "$id" && ended "slurm-$id.out" "$id" " DUE TO JOB REQUEUE" && exits 0 scancel "$id" &&
	id=$(sbatch --parsable -a 3 script.sh) && job_becomes "${id}_3" RUNNING && wait_for 20 eval "grep -q begun slurm-${id}_3.out" && own=$(gpuq status --json "${id}_3" | sed "s/.*\"element_id\":\([0-9]*\).*/\1/") && exits 0 scancel "$id" && ended "slurm-${id}_3.out" "$own" ""
'

test_expect_success 'a script that ends by itself, one of gpuq, and the other pods of a gang say nothing' '
	printf "#!/bin/sh\necho begun\nexit 3\n" >own.sh && id=$(sbatch --parsable own.sh) && exits 3 gpuq wait "$id" && ! grep slurmstepd "slurm-$id.out" &&
	printf "#!/bin/sh\necho begun\nexec sleep 100\n" >gpuq.sh && id=$(submit -t 0:01 gpuq.sh) && exits 251 gpuq wait "$id" && gpuq logs "$id" >got && ! grep slurmstepd got &&
	printf "#!/bin/sh\nexec sleep 100\n" >gang.sh && id=$(sbatch --parsable -N 2 -t 0:01 gang.sh) && ended "slurm-$id.out" "$id" " DUE TO TIME LIMIT" && exits 251 gpuq wait "$id" && test "$(grep -c slurmstepd "slurm-$id.out")" = 1
'

test_expect_success 'srun says it on standard error, and exits as before' '
	exits 251 srun -t 0:01 sh -c "echo begun; exec sleep 100" && says out begun && grep -Eq "^slurmstepd: error: \*\*\* STEP [0-9]+\.0 ON [^ ]+ CANCELLED AT [0-9]{4}-[0-9][0-9]-[0-9][0-9]T[0-9:]{8} DUE TO TIME LIMIT \*\*\*$" err && test "$(grep -c slurmstepd err)" = 1 &&
	exits 3 srun sh -c "exit 3" && ! grep slurmstepd err
'

test_expect_success 'the end of a daemon is none of a job' '
	begun && stop_gpuqd && start_gpuqd --gpus 1 && job_becomes "$id" RUNNING && ! grep slurmstepd "slurm-$id.out" && exits 0 scancel "$id" && ended "slurm-$id.out" "$id" "" && stop_gpuqd
'

test_done
