#!/bin/sh
# An interactive session, from a wrapper: the devices are held while several programs run.
salloc --nodes=1 --gres=gpu:1 --time=10 --job-name=session sh -c '
	echo "node $SLURM_JOB_NODELIST devices $CUDA_VISIBLE_DEVICES"
	srun sh -c "echo first \$SLURM_JOB_ID"
	srun --ntasks=1 sh -c "exit 4" || echo "code $?"
	squeue --noheader --jobs=$SLURM_JOB_ID --format="%j %T %D"
	sleep 1'
echo "salloc $?"
# runs: sh
# check: grep -q "^node .* devices [0-9]$" runs.out && grep -q "^first [0-9]*$" runs.out && grep -qx "code 4" runs.out
# check: grep -qx "session RUNNING 1" runs.out && grep -qx "salloc 0" runs.out && grep -q "^salloc: Granted job allocation" runs.err
