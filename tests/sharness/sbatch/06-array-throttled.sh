#!/bin/bash
#SBATCH --array=0-5%2
#SBATCH --gres=gpu:1
#SBATCH --time=5
#SBATCH --output=results/%A_%a.txt
lr=(1e-2 5e-3 1e-3 5e-4 1e-4 5e-5)
echo "$SLURM_ARRAY_JOB_ID/$SLURM_ARRAY_TASK_ID lr=${lr[$SLURM_ARRAY_TASK_ID]}"
running=$(ls running 2>/dev/null | wc -l)
touch running/$SLURM_ARRAY_TASK_ID
sleep 0.3
[ "$running" -lt 2 ] || touch too-many
rm running/$SLURM_ARRAY_TASK_ID
# before: mkdir -p results running
# check: test "$(cat results/${id}_*.txt | sort | tail -n 1)" = "$id/5 lr=5e-5" && test $(ls results | wc -l) = 6
# check: ! test -e too-many
