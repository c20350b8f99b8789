#!/bin/bash
#SBATCH --hold
#SBATCH --nice=50
#SBATCH --begin=now
#SBATCH --deadline=now+2hours
#SBATCH --time=1:00:00
#SBATCH --time-min=10
#SBATCH -o held.out
echo ran
# meanwhile: wait_for 60 job_is $id reason HeldUser && scontrol release $id
# check: grep -qx ran held.out && job_is $id time_min_s 600
