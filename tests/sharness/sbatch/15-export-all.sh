#!/bin/bash
#SBATCH --export=ALL,EPOCHS=5,WANDB_MODE=offline
#SBATCH -o env.out
echo "$EPOCHS $WANDB_MODE $FROM_OUTSIDE"
# before: export FROM_OUTSIDE=seen
# check: grep -qx "5 offline seen" env.out
