#!/bin/bash
#SBATCH -J finetune
#SBATCH -p gpu
#SBATCH -t 0-02:00:00
#SBATCH -N 1 -n 1 -c 2
#SBATCH --gres=gpu:1
#SBATCH -o %x-%j.log
set -euo pipefail
module() { :; }
module purge
module load cuda
nvidia-smi -L
echo "devices=$CUDA_VISIBLE_DEVICES cpus=$SLURM_CPUS_PER_TASK on=$SLURM_GPUS_ON_NODE"
# needs: TWO_CPUS
# check: grep -Eqx "devices=[0-9] cpus=2 on=1" finetune-$id.log
# check: test "$(grep -c '^GPU' finetune-$id.log)" = 1
# check: job_is $id queue gpu && job_is $id name finetune && job_is $id time_limit_s 7200
