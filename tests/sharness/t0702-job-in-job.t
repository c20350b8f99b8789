#!/bin/sh
test_description='a job that a job submits has nothing of its variables'
. "$(dirname "$0")/lib.sh"

# One of them runs beside the job that submits it.
test_have_prereq TWO_CPUS || {
	skip_all='this machine has one CPU'
	test_done
}

test_expect_success 'start' '
	mkdir bin && for name in sbatch salloc srun; do
		ln -s "$test_build/gpuq/gpuq" bin/$name || return 1
	done && PATH=$PWD/bin:$PATH && export PATH && start_gpuqd &&
	cat >outer.sh <<-END
	#!/bin/sh
	#SBATCH -a 3 -n 1 -c 1 --mem=32M -A first --comment outer -G 2
	export MINE=kept SLURM_MPI_TYPE=pmi2
	env | sort >outer.env
	sbatch --parsable -c 1 -o inner.out --wrap "env | sort >inner.env" >inner.id
	srun -n 1 sbatch --parsable -c 1 -o step.out --export=ALL,SLURM_NTASKS=9 --wrap "env | sort >step.env" >step.id
	"$test_build/gpuq/gpuq" submit --parsable --cpus 1 --wrap "env | sort >plain.env" >plain.id
	salloc -Q -n 1 -c 1 sh -c "env | sort >salloc.env; srun sh -c \"env | sort >inside.env\""
	END
'

test_expect_success 'the outer job has what its options say' '
	id=$(sbatch --parsable -o outer.out outer.sh) && job_becomes "${id}_3" COMPLETED && cat outer.out && for name in inner step plain; do
		job_becomes "$(cat $name.id)" COMPLETED || return 1
	done &&
	for name in SLURM_ARRAY_TASK_ID=3 SLURM_JOB_ACCOUNT=first SLURM_MEM_PER_NODE=32 SLURM_GPUS=2 SLURM_JOB_COMMENT=outer; do
		says outer.env "^$name$" || return 1
	done
'

test_expect_success 'the inner ones have their own, and the submitter'\''s other variables' '
	for name in inner step; do
		says $name.env "^SLURM_JOB_ID=$(cat $name.id)$" && says $name.env "^GPUQ_JOB_ID=$(cat $name.id)$" && says $name.env "^SLURM_NTASKS_PER_NODE=1$" &&
		! grep "ARRAY\|ACCOUNT\|MEM_PER\|SLURM_GPUS\|SLURM_STEP\|COMMENT\|SLURM_JOB_GPUS\|=outer$" $name.env &&
		says $name.env "^MINE=kept$" && says $name.env "^SLURM_MPI_TYPE=pmi2$" && says $name.env "^CUDA_VISIBLE_DEVICES=$" || return 1
	done && says inner.env "^SLURM_NTASKS=1$"
'

test_expect_success 'one that has no variables of Slurm has none of another job' '
	! grep "^SLURM_[^M]\|ARRAY" plain.env && says plain.env "^GPUQ_JOB_ID=$(cat plain.id)$" && says plain.env "^SLURM_MPI_TYPE="
'

test_expect_success 'an allocation in a job: srun in it is in that' '
	inner=$(sed -n "s/^SLURM_JOB_ID=//p" salloc.env) && test "$inner" != "$id" && ! grep "ARRAY\|GPUQ_JOB_ID\|SLURM_STEP_\|NTASKS_PER" salloc.env && says salloc.env "^MINE=kept$" &&
	says inside.env "^SLURM_JOB_ID=$inner$" && says inside.env "^GPUQ_JOB_ID=$inner$" && ! grep ARRAY inside.env
'

test_done
