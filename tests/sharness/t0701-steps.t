#!/bin/sh
test_description='steps of a job are numbered from 0; the exit code of salloc'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' '
	mkdir bin && for name in sbatch salloc scancel scontrol squeue srun; do
		ln -s "$test_build/gpuq/gpuq" bin/$name || return 1
	done && PATH=$PWD/bin:$PATH && export PATH && start_gpuqd --gpus 2
'

test_expect_success 'sruns of a script are steps 0, 1, 2...; all tasks of one have its number' '
	cat >steps.sh <<-\END &&
	#!/bin/sh
	#SBATCH -n 2 -c 1 --requeue
	srun sh -c "echo first \$SLURM_STEP_ID \$SLURM_STEPID"
	srun -n 1 sh -c "echo second \$SLURM_STEP_ID"
	srun -n 1 -o "file-%J-%s" sh -c "echo third \$SLURM_STEP_ID; srun -n 1 sh -c \"echo inner \\\$SLURM_STEP_ID\""
	srun -n 1 sh -c "echo last \$SLURM_STEP_ID"
	echo "script ${SLURM_STEP_ID-none}"
	END
	id=$(sbatch --parsable -o "out.%j" steps.sh) && job_becomes "$id" COMPLETED &&
	printf "%s\n" "first 0 0" "first 0 0" "second 1" "last 4" "script none" >want && test_cmp want "out.$id" &&
	printf "%s\n" "third 2" "inner 3" >want && test_cmp want "file-$id.2-2"
'

test_expect_success 'steps side by side have numbers of their own, elements of an array their own count' '
	cat >beside.sh <<-\END &&
	#!/bin/sh
	#SBATCH -a 0-1 -c 1
	for i in 1 2 3 4; do srun -n 1 sh -c "echo \$SLURM_STEP_ID" & done
	wait
	END
	id=$(sbatch --parsable -o "beside.%a" beside.sh) && job_becomes "${id}_0" COMPLETED && job_becomes "${id}_1" COMPLETED &&
	printf "%s\n" 0 1 2 3 >want && sort "beside.0" >got && test_cmp want got && sort "beside.1" >got && test_cmp want got
'

test_expect_success 'an attempt counts anew' '
	cat >again.sh <<-\END &&
	#!/bin/sh
	#SBATCH -c 1
	srun -n 1 sh -c "echo \$SLURM_RESTART_COUNT \$SLURM_STEP_ID"
	until [ -e go ]; do sleep 0.05; done
	END
	id=$(sbatch --parsable -o again.out again.sh) && wait_for 60 grep -q "0 0" again.out && scontrol requeue "$id" && wait_for 60 grep -q "1 0" again.out &&
	>go && job_becomes "$id" COMPLETED
'

test_expect_success 'in salloc as well' '
	salloc -Q -n 2 -c 1 sh -c "srun -n 1 sh -c \"echo \\\$SLURM_STEP_ID\"; srun -n 2 sh -c \"echo \\\$SLURM_STEP_ID\"; srun -n 1 sh -c \"echo \\\$SLURM_STEP_ID\"" >out &&
	printf "%s\n" 0 1 1 2 >want && test_cmp want out
'

test_expect_success 'salloc ends with the exit code of its command, and with 1 when there is no allocation' '
	exits 7 salloc -Q sh -c "exit 7" && exits 0 salloc -Q true && exits 3 salloc -Q srun sh -c "exit 3" && exits 1 salloc -Q -p nowhere true &&
	held=$(sbatch --parsable -G 2 --wrap "sleep 300") && job_becomes "$held" RUNNING && exits 1 salloc -Q -I1 -G 2 true && scancel "$held"
'

test_done
