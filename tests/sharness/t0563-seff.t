#!/bin/sh
test_description='sacct and seff have what a job used, in the words of Slurm'
. "$(dirname "$0")/lib.sh"

mkdir names && for name in sacct sbatch seff squeue; do ln -s "$test_build/gpuq/gpuq" "names/$name"; done && PATH=$PWD/names:$PATH

test_expect_success 'sacct: no column of use is empty for a job that has ended' '
	start_gpuqd && id=$(sbatch --parsable --wrap "i=0; while [ \$i -lt 200000 ]; do i=\$((i + 1)); done") && gpuq wait "$id" &&
	sacct -n -P -j "$id" -o TotalCPU,UserCPU,SystemCPU,AveCPU,CPUTime,CPUTimeRAW,MaxRSS,AveRSS,MaxDiskRead,MaxDiskWrite,ReqTRES,AllocTRES,Elapsed,TRESUsageInTot,TRESUsageInMax,TRESUsageOutTot,TRESUsageOutMax >out 2>err &&
	test "$(wc -l <out)" = 2 && test ! -s err && ! grep -E "^\||\|\||\|$|Unknown" out &&
	says out "^[0-9][0-9]:[0-9][0-9]\.[0-9]{3}\|" && says out "\|[0-9]+K\|[0-9]+K\|[0-9.]+M\|" && says out "cpu=00:00:[0-9]+,fs/disk=[0-9]+,mem=[0-9]+K"
'

test_expect_success 'sacct --json: the step of the script, and the times of its processor; squeue --json has whose it is' '
	sacct --json -j "$id" >out && python3 -c "
import json, os
job = json.load(open(\"out\"))[\"jobs\"][0]
step = job[\"steps\"][0]
assert step[\"step\"] == {\"id\": \"$id.batch\", \"name\": \"batch\"}, step
total, user, system = [1000000 * t[\"seconds\"] + t[\"microseconds\"] for t in (job[\"time\"][k] for k in (\"total\", \"user\", \"system\"))]
assert total > 0 and abs(total - user - system) <= 1000, job[\"time\"]
assert step[\"time\"][\"total\"] == job[\"time\"][\"total\"] and step[\"state\"] == [\"COMPLETED\"], step
assert [t for t in step[\"tres\"][\"requested\"][\"max\"] if t[\"type\"] == \"mem\" and t[\"count\"] > 0], step[\"tres\"]" &&
	wait=$(sbatch --parsable -H --wrap true) && squeue --json >out && python3 -c "
import json, os
job = json.load(open(\"out\"))[\"jobs\"][0]
assert job[\"user_id\"] == os.getuid() and job[\"deadline\"] == {\"set\": False, \"infinite\": False, \"number\": 0} and job[\"flags\"] == [], job" &&
	gpuq cancel "$wait"
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
