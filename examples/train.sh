#!/bin/sh
# A batch script for Slurm: gpuq submit examples/train.sh --epochs 3
#SBATCH --job-name=train
#SBATCH --time=00:30:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --gres=gpu:1
#SBATCH --output=train-%j.out
#SBATCH --signal=B:USR1@60
#SBATCH --requeue --open-mode=append
# Lines for gpuq, which override those above.
#GPUQ --image=busybox:1.36
#GPUQ --retry=2:infra

trap 'echo "signalled: saving a checkpoint"; exit 85' USR1

echo "job ${GPUQ_JOB_ID:-?} on $(hostname), devices: ${CUDA_VISIBLE_DEVICES:-none}, arguments: $*"
step=1
while [ "$step" -le 5 ]; do
	echo "step $step of 5"
	sleep 1 &
	wait $!
	step=$((step + 1))
done
