#!/bin/bash
#SBATCH --job-name=pyxis
#SBATCH --gpus=1
#SBATCH --container-image=registry.example/team/trainer:24.07
#SBATCH --time=4:00:00
#SBATCH -o /dev/null
true
# check: gpuq submit --dry-run -o json "$script" >dry.json && grep -q '"image":"registry.example/team/trainer:24.07"' dry.json
