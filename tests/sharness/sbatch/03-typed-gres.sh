#!/bin/bash -l
#SBATCH --job-name="pretrain"          # quotes and a remark
#SBATCH --partition=gpu
#SBATCH --gres=gpu:a100:2
#SBATCH --cpus-per-task=1
#SBATCH --mem=512M
#SBATCH --time=1-00:00:00
#SBATCH --output=logs/%x_%j.out
#SBATCH --error=logs/%x_%j.err
echo "to stdout $(echo $CUDA_VISIBLE_DEVICES | tr , '\n' | grep -c .)"
echo "to stderr" >&2
# before: mkdir -p logs
# check: grep -qx "to stdout 2" logs/pretrain_$id.out
# check: grep -qx "to stderr" logs/pretrain_$id.err
# check: job_is $id gpus 2 && job_is $id flavor a100 && job_is $id time_limit_s 86400
