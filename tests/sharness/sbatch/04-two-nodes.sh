#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=2
#SBATCH --time=00:30:00
#SBATCH --output=node-%n.out
# The script runs once in each pod, as a launcher does under srun.
echo "node=$SLURM_NODEID of=$SLURM_NNODES tasks=$SLURM_NTASKS first=$SLURM_PROCID per=$SLURM_NTASKS_PER_NODE"
# needs: TWO_CPUS
# check: grep -qx "node=0 of=2 tasks=2 first=0 per=1" node-0.out
# check: grep -qx "node=1 of=2 tasks=2 first=1 per=1" node-1.out
# check: job_is $id gpus 4 && job_is $id pod_count 2
