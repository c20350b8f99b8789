#!/bin/sh
# A wrapper: each stage waits for the one before it.
set -e
PREP=$(sbatch --parsable --job-name=prep -o prep.out --wrap='sleep 0.3; echo prepared >data')
TRAIN=$(sbatch --parsable -d afterok:$PREP -J train -o train.out --wrap='cat data')
FAIL=$(sbatch --parsable --dependency=afterany:$TRAIN -J fail -o fail.out --wrap='exit 3')
CLEAN=$(sbatch --parsable --dependency=afternotok:$FAIL -J clean -o clean.out --wrap='echo cleaned')
NEVER=$(sbatch --parsable --dependency=afterok:$FAIL --kill-on-invalid-dep=yes -J never --wrap='touch never')
sbatch --wait -d afterany:$CLEAN:$NEVER,singleton -J clean -o /dev/null --wrap=true
echo $FAIL >fail.id
echo $NEVER >never.id
# runs: sh
# check: grep -qx prepared train.out && grep -qx cleaned clean.out && ! test -e never
# check: job_is $(cat fail.id) exit_code 3 && job_is $(cat never.id) state CANCELLED
