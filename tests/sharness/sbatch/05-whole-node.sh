#!/bin/bash
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --gpus-per-node=4
#SBATCH --time=12:00:00
#SBATCH -o slurm.%N.%j.out
env | grep ^SLURM_JOB_NODELIST
# warns: 0 means all memory
# check: grep -qx "SLURM_JOB_NODELIST=$(job $id pods.0.node)" slurm.$(job $id pods.0.node).$id.out
# check: job_is $id gpus 4
