#!/bin/bash
#SBATCH --job-name=steps
#SBATCH --gpus=2 --cpus-per-gpu=1 --ntasks-per-gpu=1
#SBATCH --prefer=fast --output=%x.out --wait
# Two runs side by side, each with a log of its own, then one that needs both.
for lr in 1 2; do
	srun --exact --ntasks=1 --gpus-per-task=1 --cpu-bind=none --export=ALL,LR=$lr --output=run-$lr-%t.log bash -c 'echo "lr $LR"' &
done
wait
srun --ntasks=2 --label --kill-on-bad-exit=1 bash -c 'echo "of $SLURM_NTASKS"' | sort
echo "tasks $SLURM_NTASKS"
# needs: TWO_CPUS
# check: test "$(cat run-1-0.log run-2-0.log | tr '\n' ' ')" = "lr 1 lr 2 "
# check: grep -qx "0: of 2" steps.out && grep -qx "1: of 2" steps.out && grep -qx "tasks 2" steps.out
# check: grep -q "srun: warning: --cpu-bind is ignored" steps.out
