#!/bin/bash
#SBATCH --export=NONE
#SBATCH -o env.out
echo "outside=${FROM_OUTSIDE-unset} id=$SLURM_JOB_ID"
# before: export FROM_OUTSIDE=seen
# check: grep -qx "outside=unset id=$id" env.out
