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
# check: printf 'begun\nsaving at 0\nresumed\n' | { grep -v slurmstepd resumes.log | cmp - /dev/fd/3; } 3<&0
# check: test "$(grep -c 'slurmstepd: error: .* DUE TO JOB REQUEUE \*\*\*$' resumes.log)" = 1
# check: job_is $id attempt 1
