#!/bin/bash
#SBATCH -p gpu --gpus a100:2 --mem-per-gpu=128M -n2
#SBATCH --error=%x-%A.err --output=%x-%A.out -JboTh
#SBATCH --job-name second   # the last one wins
#GPUQ --checkpoint USR1@10s
# A remark between directives ends nothing.

#SBATCH --time 0:45:00
echo "$SLURM_JOB_NAME $SLURM_NTASKS"
#SBATCH --time=1
# needs: TWO_CPUS
# check: grep -qx "second 2" second-$id.out && job_is $id time_limit_s 2700 && job_is $id gpus 2
