#!/bin/bash
#SBATCH --time=1:00
#SBATCH -o t.out
touch started
sleep 300
# meanwhile: wait_for 60 test -e started && scontrol update jobid=$id timelimit=0:01
# exit: 251
# state: TIMEOUT
# check: test "$(sacct -X -n -P -o State -j $id)" = TIMEOUT
