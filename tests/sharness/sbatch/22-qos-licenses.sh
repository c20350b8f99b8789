#!/bin/bash
#SBATCH --qos=short
#SBATCH --licenses=matlab:1
#SBATCH --reservation=""
#SBATCH -o q.out
echo "$SLURM_JOB_QOS"
# ends: refused
# check: says err 'reservation'
# check: sed 's/^#SBATCH --reser.*//' "$script" >fixed.sh && id=$(submit fixed.sh) && exits 0 gpuq wait $id && grep -qx short q.out
# check: exits 1 gpuq submit --qos=shrot --wrap true && says err "short" && exits 1 gpuq submit -L matlap --wrap true && says err matlab
