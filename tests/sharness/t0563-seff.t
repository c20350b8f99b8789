#!/bin/sh
test_description='sacct and seff have what a job used, in the words of Slurm'
. "$(dirname "$0")/lib.sh"

mkdir names && for name in sacct sbatch seff; do ln -s "$test_build/gpuq/gpuq" "names/$name"; done && PATH=$PWD/names:$PATH

test_expect_success 'sacct: no column of use is empty for a job that has ended' '
	start_gpuqd && id=$(sbatch --parsable --wrap "i=0; while [ \$i -lt 200000 ]; do i=\$((i + 1)); done") && gpuq wait "$id" &&
	sacct -n -P -j "$id" -o TotalCPU,UserCPU,SystemCPU,AveCPU,CPUTime,CPUTimeRAW,MaxRSS,AveRSS,MaxDiskRead,MaxDiskWrite,ReqTRES,AllocTRES,Elapsed,TRESUsageInTot,TRESUsageInMax,TRESUsageOutTot,TRESUsageOutMax >out 2>err &&
	test "$(wc -l <out)" = 2 && test ! -s err && ! grep -E "^\||\|\||\|$|Unknown" out &&
	says out "^[0-9][0-9]:[0-9][0-9]\.[0-9]{3}\|" && says out "\|[0-9]+K\|[0-9]+K\|[0-9.]+M\|" && says out "cpu=00:00:[0-9]+,fs/disk=[0-9]+,mem=[0-9]+K"
'

test_expect_success 'a job that never ran used nothing' '
	held=$(sbatch --parsable -H --wrap true) && gpuq cancel "$held" && sacct -X -n -P -j "$held" -o TotalCPU,MaxRSS,TRESUsageInTot >out &&
	says out "^00:00:00\|0\|cpu=00:00:00,fs/disk=0,mem=0$"
'

test_expect_success 'seff: its lines, for a job and its state' '
	seff "$id" >out && cat >want <<-END && sed "s/[0-9][0-9.]* [KMG]B/N/g; s/[0-9:.]*%/P/; s/[0-9][0-9]:[0-9:]*/T/g" out >got && test_cmp want got
	Job ID: $id
	Cluster: gpuq
	User/Group: $(id -un)/$(id -un)
	State: COMPLETED (exit code 0)
	Nodes: 1
	Cores per node: 1
	CPU Utilized: T
	CPU Efficiency: P of T core-walltime
	Job Wall-clock time: T
	Memory Utilized: N
	END
'

test_expect_success 'seff: devices that were not measured are Unknown' '
	id=$(sbatch --parsable --gres=gpu:1 --wrap true) && gpuq wait "$id" && seff "$id" >out && grep -qx "GPU Utilization: Unknown" out
'

test_expect_success 'seff of one that pends, and of none' '
	held=$(sbatch --parsable -H --wrap true) && seff "$held" >out && says out "Efficiency not available for jobs in the PENDING state" &&
	test_expect_code 1 seff 999 && gpuq cancel "$held" && stop_gpuqd
'

test_done
