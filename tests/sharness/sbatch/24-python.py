#!/usr/bin/env python3
#SBATCH --job-name=py
#SBATCH -o py.out
#SBATCH --ntasks=1 --mem-per-cpu=64M

"""The interpreter is the one that the first line names."""
import os
import sys

print("python", sys.version_info[0], os.environ["SLURM_JOB_NAME"])
# check: grep -qx "python 3 py" py.out
