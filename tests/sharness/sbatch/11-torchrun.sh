#!/bin/bash
#SBATCH --job-name=ddp
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=2
#SBATCH --output=%x.%j
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 50000))
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
srun torchrun \
	--nnodes "$SLURM_NNODES" \
	--nproc_per_node "$SLURM_GPUS_ON_NODE" \
	--rdzv_id "$SLURM_JOB_ID" \
	--rdzv_backend c10d \
	--rdzv_endpoint "$MASTER_ADDR:$MASTER_PORT" \
	train.py --epochs 3
# needs: TWO_CPUS
# check: grep -qx "torchrun --nnodes 1 --nproc_per_node 2 --rdzv_id $id --rdzv_backend c10d --rdzv_endpoint $(job $id pods.0.node):$((10000 + id)) train.py --epochs 3" ddp.$id
# check: grep -qx "threads=2" ddp.$id
