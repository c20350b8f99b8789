#!/bin/bash
#SBATCH --mail-type=BEGIN,END,FAIL,TIME_LIMIT_80
#SBATCH --mail-user=someone@site.example
#SBATCH -A proj123
#SBATCH --comment="ablation 7"
#SBATCH -o mail.out
echo "account $SLURM_JOB_ACCOUNT"
# check: grep -qx "account proj123" mail.out && job_is $id account proj123
# check: gpuq submit --dry-run -o json "$script" >dry.json && grep -q '"mail_user":"someone@site.example"' dry.json && grep -q '"TIME_LIMIT_80"' dry.json && grep -q '"ablation 7"' dry.json
