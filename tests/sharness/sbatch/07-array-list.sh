#!/bin/bash
#SBATCH --array=1,3,10-20:5
#SBATCH -t 2:30
#SBATCH -o a-%4a.out
file=$(sed -n "${SLURM_ARRAY_TASK_ID}p" files.txt)
echo "$SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN-$SLURM_ARRAY_TASK_MAX ${file:-none}"
[ "$SLURM_ARRAY_TASK_ID" != 3 ] || exit 7
# before: printf 'one\ntwo\nthree\n' >files.txt
# exit: 7
# check: grep -qx "5 1-20 one" a-0001.out && grep -qx "5 1-20 none" a-0015.out
# check: job_is ${id}_3 state FAILED && job_is ${id}_20 state COMPLETED && job_is ${id}_1 time_limit_s 150
