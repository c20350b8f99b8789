#!/bin/bash
#SBATCH --job-name=notebook
#SBATCH --gres=gpu:1g.10gb:1
#SBATCH --time=8:00:00
echo never, where nothing is cut into instances
# ends: no
# warns: no node can hold
# meanwhile: wait_for 60 job_is $id reason Unsatisfiable && gpuq cancel $id
# check: gpuq submit --dry-run -o json "$script" >dry.json && grep -q '"mig":"1g.10gb"' dry.json
