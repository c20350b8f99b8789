#!/bin/sh
# A wrapper that submits a sweep and waits until nothing of it is left.
for lr in 1 2 3; do
	sbatch -J sweep --export=ALL,LR=$lr -o sweep-$lr.out --wrap 'echo lr=$LR'
done >submitted
while [ "$(squeue -h --me -n sweep -t PD,CF,R,CG -o %i | wc -l)" -gt 0 ]; do sleep 0.1; done
sed 's/[0-9]*$/N/' submitted | uniq
cat sweep-*.out
# runs: sh
# check: printf 'Submitted batch job N\nlr=1\nlr=2\nlr=3\n' | cmp - runs.out
