#!/bin/bash
#SBATCH -J cancelme
#SBATCH -o c.out
#SBATCH --gpus=1
trap 'echo told; exit 9' TERM
touch started
sleep 300 &
wait
# meanwhile: wait_for 60 test -e started && scancel --name=cancelme --me
# exit: 252
# state: CANCELLED
# check: grep -qx told c.out
