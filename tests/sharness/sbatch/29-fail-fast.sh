#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1
#SBATCH --gres=gpu:1
#SBATCH -o gang-%t.out
set -e
echo "$SLURM_NODEID" >&2
[ "$SLURM_NODEID" = 0 ] && sleep 300
until [ -s gang-0.out ]; do sleep 0.1; done # the other has begun
exit 21
# needs: TWO_CPUS
# exit: 21
# state: FAILED
# check: grep -qx 0 gang-0.out && grep -qx 1 gang-1.out
