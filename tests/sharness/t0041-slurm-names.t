#!/bin/sh
test_description='squeue, scancel, sinfo, sacct, srun, scontrol: columns, filters, exit codes'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' '
	mkdir bin && for name in sbatch salloc scancel scontrol sacct sacctmgr sinfo sprio squeue srun sshare; do
		ln -s "$test_build/gpuq/gpuq" bin/$name || return 1
	done && PATH=$PWD/bin:$PATH && export PATH && start_gpuqd && node=$(gpuq nodes --json | json name)
'

test_expect_success 'sbatch says what it did; an option it does not know is told, with the nearest' '
	sbatch -J one -G 2 -A teamA --wrap "sleep 300" >out && says out "^Submitted batch job 1$" &&
	test "$(sbatch --parsable -G 4 -J two -t 90 --wrap "sleep 300")" = 2 &&
	test -z "$(sbatch -Q -H -a 3,7-9%2 -J arr --wrap true)" && job_becomes 1 RUNNING &&
	exits 2 sbatch --partitoin=x --wrap true && says err "partition" &&
	exits 1 sbatch -p nowhere --wrap true && says err "nowhere" &&
	printf "#!/bin/sh\n#SBATCH --switches=1\n" >switches.sh && exits 0 sbatch --test-only -G 1 switches.sh && says err "switches" && says err "would start at 20.* on $node" &&
	test "$(SBATCH_JOB_NAME=env SBATCH_TIMELIMIT=7 sbatch --parsable -H --wrap true)" = 4 &&
	job_is 4 name env && job_is 4 time_limit_s 420 && scancel 4
'

test_expect_success 'squeue has its columns' '
	squeue >out && head -n 1 out >head &&
	echo "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)" | test_cmp - head &&
	wait_for 60 eval "squeue -h -j 2 -o %R | grep -q Resources" && squeue -h -o "%i|%P|%j|%t|%D|%R" >out &&
	says out "^1\|default\|one\|R\|1\|$node$" && says out "^2\|default\|two\|PD\|1\|\(Resources\)$" &&
	says out "^3_\[3,7-9%2\]\|default\|arr\|PD\|1\|\(JobHeldUser\)$" &&
	squeue -h -o "[%.6i] [%6j] [%.2j]" -j 1 >out && says out "^\[     1\] \[one   \] \[on\]$" &&
	test "$(squeue -h -O JobID:4,Name:.5,StateCompact:3 -j 1)" = "1     oneR  " &&
	squeue -l >out && says out "^ +JOBID PARTITION +NAME +USER +STATE +TIME TIME_LIMI +NODES NODELIST" &&
	says out "PENDING +0:00 +1:30:00" && squeue --start >out && says out "START_TIME" && says out " two " && ! grep " one " out
'

test_expect_success 'squeue picks and sorts' '
	test "$(squeue -h -r -o %i -n arr | tr "\n" " ")" = "3_3 3_7 3_8 3_9 " &&
	test "$(squeue -h -A teamA -o %i)" = 1 && test "$(squeue -h -t PD -S i -o %A | tr "\n" " ")" = "2 3 " &&
	test "$(squeue -h -S -i -o %A | tr "\n" " ")" = "3 2 1 " && test "$(squeue -h --me -w "$node" -o %A)" = 1 &&
	test -z "$(squeue -h -u nobody)" && test -z "$(squeue -h -q other)" &&
	test -z "$(squeue -h -j 4 -o %T)" && test "$(squeue -h -j 4 -t all -o %T)" = CANCELLED &&
	exits 1 squeue -O Namee && says err "Name" && exits 2 squeue --jbos=1 && says err "jobs"
'

test_expect_success 'a job that is not there, and a server that does not answer, are two things' '
	exits 1 squeue -h -j 999 -o %T && test ! -s out && exits 255 squeue --server unix:/nowhere -h -j 1 -o %T &&
	exits 255 scancel --server unix:/nowhere 1 && exits 255 sacct --server unix:/nowhere && exits 255 sinfo --server unix:/nowhere
'

test_expect_success 'scontrol shows, holds, changes' '
	scontrol show job 1 >out && says out "^JobId=1 JobName=one$" && says out "JobState=RUNNING Reason=None" &&
	says out "ReqTRES=node=1,gres/gpu=2" && scontrol -o show job 1 >out && test "$(wc -l <out)" -le 2 &&
	scontrol hold 2 && wait_for 60 job_is 2 reason HeldUser && scontrol release 2 &&
	scontrol update jobid=2 timelimit=1-00:00:00 name=renamed nice=3 && job_is 2 time_limit_s 86400 && job_is 2 name renamed &&
	scontrol update job 3 ArrayTaskThrottle=1 && scontrol update job=2 TimeLim=2-00:00:00 && job_is 2 time_limit_s 172800 && gpuq queue -h -j 3 -o JOBID >out && says out "%1" &&
	exits 1 scontrol update jobid=2 timelimt=3 && says err "TimeLimit" && exits 1 scontrol requeue 999 &&
	test "$(scontrol show hostnames "n[01-03],x" | tr "\n" " ")" = "n01 n02 n03 x " &&
	test "$(scontrol show hostlist n1,n2,n3)" = "n[1-3]" && scontrol ping && exits 1 scontrol showw && says err "show"
'

test_expect_success 'what a job asks for and says of itself is there, in lists and in full' '
	sbatch --parsable -J facts -H -N 2 -c 3 --mem 2G --comment "a comment" -D "$PWD" -o "f-%j-%x.out" --nice=7 -d afterany:1 --wrap true >id && f=$(cat id) &&
	squeue -h -j "$f" -o "%C|%m|%k|%Z|%y|%E" >out && says out "^6\|2G\|a comment\|$PWD\|7\|afterany:1\(unfulfilled\)$" &&
	squeue -h -j 1 -o "%C|%m|%k|%y|%E" >out && says out "^1\|0\|\(null\)\|0\|\(null\)$" &&
	scontrol show job "$f" >out && says out "NumNodes=2 NumCPUs=6$" && says out "ReqTRES=cpu=6,mem=4G,node=2$" && says out "MinMemoryNode=2G" &&
	says out "Comment=a comment" && says out "WorkDir=$PWD$" && says out "StdOut=$PWD/f-$f-facts.out$" && says out "StdErr=$PWD/f-$f-facts.out$" &&
	says out "Dependency=afterany:1\(unfulfilled\)$" && says out "Nice=7" && scontrol show job 3 >out && says out "StdOut=.*/slurm-%A_%a.out$" &&
	scontrol update jobid="$f" comment=other && test "$(squeue -h -j "$f" -o %k)" = other && kill_gpuqd && start_gpuqd &&
	test "$(squeue -h -j "$f" -o "%C %m %k %y")" = "6 2G other 7" && scancel "$f" && job_becomes "$f" CANCELLED &&
	test "$(sacct -X -n -P -j "$f" -o ReqMem,Comment,WorkDir)" = "4G|other|$PWD"
'

test_expect_success 'sinfo: partitions, nodes, reasons' '
	sinfo >out && says out "^PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST$" && says out "^default\*     up   infinite      1    mix $node$" &&
	test "$(sinfo -h -o "%n %t %D")" = "$node mix 1" && sinfo -h -o %C >out && says out "^[0-9]+/[0-9]+/0/$(sinfo -h -o %c)$" && sinfo -N >out && says out "^$node +1 +default\* +mix" &&
	sinfo -s >out && says out "1/0/0/1 $node" && test -z "$(sinfo -h -t idle -o %n -N)" &&
	scontrol update nodename="$node" state=drain reason="new fan" && sinfo -R >out && says out "new fan" &&
	test "$(sinfo -h -o %t)" = drng && scontrol update nodename="$node" state=resume && test "$(sinfo -h -o %t)" = mix
'

test_expect_success 'scancel is silent, asks, picks by account, signals' '
	exits 1 scancel 999 && says err "job id 999" && echo n | scancel -i 1 >out && says out "Cancel job_id=1 name=one partition=default" &&
	job_is 1 state RUNNING && scancel -A other && job_is 1 state RUNNING && exits 1 scancel &&
	exits 0 scancel -A teamA && test ! -s out && test ! -s err && job_becomes 1 CANCELLED && job_becomes 2 RUNNING &&
	scancel -s KILL 2 && job_becomes 2 FAILED && scancel 3_7 && test "$(squeue -h -r -j 3 -o %K | tr "\n" " ")" = "3 8 9 " && scancel -n arr
'

test_expect_success 'sacct: columns, code and signal, the line of the script' '
	exits 5 sbatch --parsable --wait --wrap "exit 5" && id=$(cat out) && sacct -j $id,2 >out && head -n 2 out >head &&
	printf "%s\n%s\n" "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode " \
		"------------ ---------- ---------- ---------- ---------- ---------- -------- " | test_cmp - head &&
	says out "^$id +wrap +default +1 +FAILED +5:0 $" && says out "^$id.batch +batch +1 +FAILED +5:0 $" && says out "^2 .* FAILED +0:9 $" &&
	test "$(sacct -X -n -P -o JobID,State,ExitCode -j $id)" = "$id|FAILED|5:0" &&
	test "$(sacct -X -n -p --delimiter=, -o JobID,ExitCode -j $id)" = "$id,5:0," &&
	sacct -b -n >out && says out "^1 +CANCELLED\+ +0:0 $" && test "$(sacct -X -n -s F -o JobIDRaw%4 | tr -s " \n" " ")" = " 2 $id " &&
	test -z "$(sacct -n -E now-1days)" && test -n "$(sacct -n -S now-1hours -u "$(id -un)")" && test -z "$(sacct -n -j 999)" &&
	test -z "$(sacct -n -j $id.0,$id.extern)" && test "$(sacct -n -j $id.batch -o JobID%20 | tr -d " ")" = $id.batch &&
	exits 1 sacct -o Stte && says err "State" && sacct -e | grep -qx Elapsed
'

test_expect_success 'srun outside of a job is a job' '
	exits 3 srun -Q -J step -G 1 sh -c "echo \$SLURM_JOB_NAME; exit 3" && says out "^step$"
'

test_expect_success 'srun inside of a job: tasks end together, lines are whole' '
	cat >tasks.sh <<-\END &&
	#!/bin/sh
	#SBATCH -o tasks.out
	srun -n 3 -l sh -c "for i in 1 2 3 4 5 6 7 8 9; do printf \"a line \"; sleep 0.01; echo of \$SLURM_PROCID; done"
	srun -n 2 sh -c "[ \$SLURM_PROCID = 0 ] || exit 9; sleep 300"
	echo "code $?"
	srun -n 1 nosuchprogram
	echo "code $?"
	srun --ntaks=2 true
	END
	id=$(sbatch --parsable tasks.sh) && exits 2 gpuq wait --timeout 60s $id &&
	test "$(grep -c "^\([0-2]\): a line of \1$" tasks.out)" = 27 && says tasks.out "^code 9$" && says tasks.out "^code 127$" &&
	says tasks.out "did you mean --ntasks"
'

test_expect_success 'each option of Slurm is answered, and the manual says how' '
	/usr/bin/python3 "$test_source/tests/sharness/slurm_tables.py" "$test_source/man/gpuq-slurm.7"
'

test_expect_success 'each letter of the manual is a column' '
	sed -n "s/^\\.Ql \\([iP] [A-Za-z ]*\\) [;.]$/\\1/p" "$test_source/man/gpuq-slurm.7" >letters && test "$(wc -l <letters)" = 2 &&
	for letter in $(sed -n 1p letters); do exits 0 squeue -o "%$letter" || return 1; done &&
	for letter in $(sed -n 2p letters); do exits 0 sinfo -o "%$letter" || return 1; done
'

test_expect_success 'lines of sinfo and squeue from the wild' '
	sinfo -N -h -o "%N %c %m %z %d %w %f %O" >out && says out "^$node +[0-9]+ [0-9]+ 1:[0-9]+:1 0 1 .* N/A$" &&
	sinfo -h -O "NodeHost,Disk,CPUsLoad,SocketCoreThread,Weight,AllocMem" >out && says out "^$node +0 +N/A +1:[0-9]+:1 +1 +[0-9]+" &&
	one=$(sh_job "exec sleep 60") && test "$(squeue -h -j $one -o "%U %G %H:%I:%J %O")" = "$(id -u) $(id -g) *:*:* 0" &&
	squeue -h -j $one -O UserID >out && says out "^$(id -u) *$" && gpuq cancel $one
'

test_expect_success 'the job of srun has the name of its program; an array whole as a dependency; a kind of gres that is none' '
	exits 0 srun --job-name=mine true && exits 0 srun "$(command -v true)" && sacct -n -P -o JobName -u "$(id -un)" >out && says out "^mine$" && says out "^true$" &&
	printf "#!/bin/sh\ntrue\n" >array.sh && array=$(sbatch --parsable -a 0-1 array.sh) && next=$(sbatch --parsable -d "afterok:${array}_*" --wrap true) &&
	exits 0 gpuq wait --timeout 60s "$next" && exits 1 sbatch --gres=tmpdisk:100G --wrap true && says err "tmpdisk is unknown, as the site maps no gres"
'

test_expect_success 'what is ignored is said, what is refused says what to do' '
	exits 0 squeue -M here && says err "^squeue: warning: --clusters is ignored: a server has one cluster" &&
	exits 2 squeue --steps && says err "^squeue: error: --steps is not offered" && exits 1 scontrol suspend 1 && says err "requeuehold" &&
	exits 1 scontrol show licenses && says err "gpuq export" && exits 1 scontrol update jobid=1 gres=gpu:2 && says err "submit it anew" &&
	exits 1 sacctmgr show coordinator && says err "gpuq export" && exits 1 sbatch --gres=shard:1 --wrap true && says err "gpu-memory" &&
	exits 255 squeue --server unix:/nowhere && says err "Unable to contact slurm controller" && exits 1 squeue -j 999 && says err "Invalid job id specified" &&
	exits 0 squeue -V && says out "^gpuq " && exits 0 gpuq slurm squeue -h
'

test_expect_success 'sinfo: limits of time, states of queues, nodes that are alike' '
	cat >site.yaml <<-\END && gpuq apply -f site.yaml >/dev/null && gpuq queues close slow >/dev/null &&
	version: 1
	queues: [{name: slow, max_time: 2d, default_time: 90m}]
	END
	test "$(sinfo -h -p slow -o "%R %a %l %L")" = "slow drain 2-00:00:00 1:30:00" && test "$(sinfo -h -p default -o "%P %l %t %G")" = "default* infinite idle gpu:default:4" &&
	scontrol show partition slow >out && says out "DefaultTime=01:30:00 MaxTime=2-00:00:00" && says out "State=DRAIN" &&
	test -n "$(sinfo -h -t IDLE -o %n)" && test -z "$(sinfo -h -t drain -N)" && test "$(sinfo -h -d -p slow -o %D)" = 0
'

test_expect_success 'lines of a script ask for --wait, --parsable, -Q and --test-only' '
	printf "#!/bin/sh\n#SBATCH --wait --parsable\nexit 3\n" >ask.sh && exits 3 sbatch ask.sh && says out "^[0-9]*$" && test ! -s err &&
	exits 3 gpuq submit ask.sh && says out "^[0-9]*$" && last_result FAILED 3 &&
	printf "#!/bin/sh\n#SBATCH -Q\n" >ask.sh && exits 0 sbatch ask.sh && test ! -s out &&
	before=$(squeue -h -t all -o %A | sort -n | tail -n 1) && printf "#!/bin/sh\n#SBATCH --test-only\n" >ask.sh && exits 0 sbatch ask.sh && says err "would start at" &&
	test "$(squeue -h -t all -o %A | sort -n | tail -n 1)" = "$before"
'

test_expect_success 'a time of day is that of the clock here' '
	printf "#!/bin/sh\n#SBATCH --begin=2030-01-01T09:00\n" >tokyo.sh && id=$(TZ=Asia/Tokyo sbatch --parsable tokyo.sh) &&
	job_is $id eligible_time 2030-01-01T00:00:00.000Z && scancel $id &&
	id=$(TZ=Asia/Tokyo sbatch --parsable --begin=2030-01-01T09:00Z --wrap true) && job_is $id eligible_time 2030-01-01T09:00:00.000Z && scancel $id
'

test_expect_success 'an array is its elements, and those that were never started' '
	id=$(sbatch --parsable --wait -a 1-3 -o /dev/null --wrap "exit 0") && test "$(sacct -X -n -P -o JobID -j $id | tr "\n" " ")" = "${id}_1 ${id}_2 ${id}_3 " &&
	test "$(squeue -h -t all -j $id -o %i | sort | tr "\n" " ")" = "${id}_1 ${id}_2 ${id}_3 " &&
	id=$(sbatch --parsable -H -a 1-3 --wrap true) && scancel $id && job_becomes $id CANCELLED && test "$(sacct -X -n -P -o JobID,State -j $id)" = "${id}_[1-3]|CANCELLED by $(id -u)"
'

test_expect_success 'sshare and sprio have columns; sacct takes those that are not recorded' '
	exits 0 sshare && says out "FairShare" && exits 0 sprio && says out "JOBSIZE" &&
	sacct -X -n -P -o JobID,MaxPages,Cluster -j 1 >out 2>err && says out "^1\|\|gpuq$" && says err "MaxPages is not recorded"
'

test_expect_success 'what has ended badly says why; cancelling what has ended is no error' '
	id=$(sbatch --parsable --wrap "exit 3") && job_becomes $id FAILED && test "$(squeue -h -t all -j $id -o "%R %r")" = "(NonZeroExitCode) NonZeroExitCode" &&
	scontrol show job $id >out && says out "JobState=FAILED Reason=NonZeroExitCode" && exits 0 scancel $id && test ! -s err &&
	exits 0 scancel -v $id && says err "already ended" && exits 1 scancel $id 999 && says err "job id 999" && ! grep "job id $id" err
'

test_expect_success 'a time limit is moved by so much' '
	id=$(sbatch --parsable -H -t 90 --wrap true) && scontrol update jobid=$id TimeLimit=+10 && job_is $id time_limit_s 6000 &&
	scontrol update TimeLimit-=1:00:00 jobid=$id && job_is $id time_limit_s 2400 && exits 1 scontrol update jobid=$id TimeLimit=-40 && says err "nothing is left" &&
	scancel $id && id=$(sbatch --parsable -H --wrap true) && exits 1 scontrol update jobid=$id TimeLimit=+10 && says err "no time limit" && scancel $id
'

# Each column requests the keys that it reads, and no others.
test_expect_success 'sacct: each column is the same alone and beside all others' '
	id=$(sbatch --parsable --wait -c 2 --mem 64M --comment c -o /dev/null --wrap "exit 3" || :) && sacct -n -P -j $id -o ALL 2>/dev/null >all &&
	sacct -e >names && test "$(wc -l <names)" -gt 100 && k=0 && while read -r name; do
		k=$((k + 1)) && sacct -n -P -j $id -o "$name" >alone 2>/dev/null && cut -d "|" -f $k all | test_cmp - alone || return 1
	done <names
'

test_expect_success 'sacct --starttime: each form of its manual, and no other' '
	for at in 2024-01-01 2024-01-01T10:00 0101 010124 0101-10:00 01/01 01/01/24 01/01/2024-10:00:05 01.01.24 10:00 10:00:00PM "9:00 am" noon \
		fika teatime elevenses midnight tomorrow now-60 now-1week uts1700000000; do exits 0 sacct -n -S "$at" || return 1; done &&
	for at in 1301 13:00pm 25:61 01/32 noonish uts now-3years 0101x10:00; do exits 1 sacct -n -S "$at" && says err "expected a time" || return 1; done &&
	test -z "$(sacct -n -S tomorrow -o JobID -s F)" && test -n "$(sacct -n -S uts1700000000 -o JobID -s F)"
'

test_expect_success 'all columns; a node once where no partition is asked' '
	exits 0 squeue -o %all && head -n 1 out | grep -q "|PARTITION|NAME|USER|ST|STATE|" && exits 0 sinfo -o %all && says out "|HOSTNAMES|" &&
	sacct -P -X -o ALL 2>err | head -n 1 | tr "|" "\n" >out && sacct -e | test_cmp - out &&
	test "$(sinfo -h -o "%P" | wc -l)" -gt 1 && test "$(sinfo -h -o "%n %t" | wc -l)" = 1 && test "$(sinfo -h -o %D)" = 1
'

test_expect_success 'sbatch: letters of --mail-type, a file that is no script, one that is a job' '
	id=$(sbatch --parsable -H --mail-type=end,Fail --wrap true) && scancel $id && exits 1 sbatch --mail-type=ends --wrap true && says err "TIME_LIMIT" &&
	printf "# no interpreter\n\necho hello\n" >bare && exits 1 sbatch bare && says err "^sbatch: error: This does not look like a batch script" &&
	exits 1 sbatch bare argument && says err "does not look like" && printf "# a job\ncommand: [true]\nhold: true\n" >job.yaml && scancel $(sbatch --parsable job.yaml)
'

test_expect_success 'commands that are not offered name the one that is, as the manual has it' '
	sed -n "/^\\.It Nm s/{N;s/^.It Nm \\([a-z]*\\)\\n./\\1 /p}" "$test_source/man/gpuq-slurm.7" >elsewhere && test "$(wc -l <elsewhere)" = 7 &&
	while read -r name instead; do
		exits 1 gpuq slurm $name -x --some option </dev/null && test "$(wc -l <err)" = 1 && grep -qF "${instead%.}" err || return 1
	done <elsewhere
'

test_expect_success 'stop' '
	gpuq cancel --me >/dev/null && stop_gpuqd
'

test_done
