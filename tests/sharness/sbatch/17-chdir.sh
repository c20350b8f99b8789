#!/bin/bash
#SBATCH -D deeper/down
#SBATCH -o here.out
#SBATCH --input=words
pwd
cat
echo "from $SLURM_SUBMIT_DIR"
# before: mkdir -p deeper/down && echo hello >deeper/down/words
# check: test "$(sed -n 1p deeper/down/here.out)" = "$PWD/deeper/down"
# check: grep -qx hello deeper/down/here.out && grep -qx "from $PWD" deeper/down/here.out
