#!/bin/sh
# A wrapper as it is written for CI.
sbatch --wait --wrap 'exit 42' >out
echo "wait: $?"
sbatch --wait --wrap 'kill -KILL $$' >out
echo "signal: $?"
JOB=$(sbatch --parsable --wrap 'exit 4')
while squeue -h -j "$JOB" -o %T 2>/dev/null | grep -q .; do sleep 0.1; done
sacct -X -n -P -o State,ExitCode -j "$JOB"
# runs: sh
# check: printf 'wait: 42\nsignal: 1\nFAILED|4:0\n' | cmp - runs.out
