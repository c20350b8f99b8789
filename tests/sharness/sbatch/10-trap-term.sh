#!/bin/bash
#SBATCH --no-requeue
#SBATCH --signal=TERM@3594 --time=60
#SBATCH -o term.log
cleanup() { echo "cleaned up"; exit 0; }
trap cleanup TERM
while :; do sleep 0.05; done
# check: grep -qx "cleaned up" term.log
