#!/bin/bash
#SBATCH --time=10
echo "job $SLURM_JOB_ID called $SLURM_JOB_NAME"
# check: grep -qx "job $id called 01-smallest.sh" slurm-$id.out
# check: job_is $id time_limit_s 600
