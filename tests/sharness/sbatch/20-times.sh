#!/bin/sh
# Every way to write a time, from a wrapper.
for t in 90:90 1:2:3 2-3 2-3:4 2-3:4:5 7 45s UNLIMITED 0; do
	sbatch --parsable --time=$t --begin=now+1hour -H --wrap true
done >ids
# runs: sh
# check: test "$(for i in $(cat ids); do job $i time_limit_s; done | tr '\n' ' ')" = "5490 3723 183600 183840 183845 420 45 null null "
# check: gpuq cancel $(cat ids)
