#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --gpus-per-task=1
#SBATCH --time=10:00
#SBATCH -o tasks.out
srun --label --gpus-per-task=1 bash -c 'echo "rank $SLURM_PROCID local $SLURM_LOCALID node $SLURM_NODEID on $CUDA_VISIBLE_DEVICES"'
srun -n 2 --exclusive bash -c 'exit $((SLURM_PROCID * 5))'
echo "last step ended with $?"
# needs: TWO_CPUS
# check: test "$(grep -c '^[01]: rank [01] local [01] node 0 on [0-9]$' tasks.out)" = 2
# check: grep -qx -E "1: rank 1 local 1 node 0 on [0-9]" tasks.out && grep -qx "last step ended with 5" tasks.out
