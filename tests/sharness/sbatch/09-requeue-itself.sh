#!/bin/bash
#SBATCH --job-name=resumes
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=resumes.log
#SBATCH --signal=B:USR1@3594
#SBATCH --time=1:00:00
save() {
	echo "saving at $SLURM_RESTART_COUNT"
	scontrol requeue "$SLURM_JOB_ID"
	wait
}
trap save USR1
if [ "$SLURM_RESTART_COUNT" = 1 ]; then
	echo resumed
	exit 0
fi
echo begun
sleep 300 &
wait
# check: printf 'begun\nsaving at 0\nresumed\n' | cmp - resumes.log
# check: job_is $id attempt 1
