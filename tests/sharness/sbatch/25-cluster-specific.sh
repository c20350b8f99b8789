#!/bin/bash
#SBATCH --job-name=elsewhere
#SBATCH --switches=1@10:00
#SBATCH --cpu-freq=performance
#SBATCH --hint=nomultithread
#SBATCH --distribution=block:block
#SBATCH --propagate=STACK
#SBATCH --site-flag=7
#SBATCH -o e.out
echo understood
# submit: --ignore-unknown
# warns: --switches is ignored: --topology
# warns: --site-flag.*skipped
# check: grep -qx understood e.out && exits 1 gpuq submit "$script" && says err 'sh:8:9: --site-flag: unknown option'
