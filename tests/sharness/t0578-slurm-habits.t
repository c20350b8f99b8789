#!/bin/sh
test_description='habits of Slurm: what scripts read from scontrol, short keys, names of srun, ended jobs in completion'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' '
	mkdir bin && for name in sbatch scontrol squeue srun; do
		ln -s "$test_build/gpuq/gpuq" bin/$name || return 1
	done && PATH=$PWD/bin:$PATH && export PATH && start_gpuqd &&
	held=$(sbatch --parsable --cpus-per-task=1 --hold --time=90 --wrap true)
'

test_expect_success 'scontrol show job: numbers of user and group, limits with hours' '
	scontrol show job "$held" >out && says out "^ +UserId=$(id -un)\($(id -u)\) GroupId=$(id -gn)\($(id -g)\)$" &&
	says out " TimeLimit=01:30:00 " && scontrol update JobId="$held" TimeLimit=2-0 && scontrol show job "$held" >out &&
	says out " TimeLimit=2-00:00:00 "
'

test_expect_success 'keys of update may be abbreviated while they mean one thing' '
	scontrol update job="$held" timel=20 comm=text && job_is "$held" time_limit_s 1200 && job_is "$held" comment text &&
	exits 1 scontrol update job="$held" time=5 && says err "no key time" && exits 1 scontrol update job="$held" qo=x &&
	job_is "$held" time_limit_s 1200
'

test_expect_success 'a dependency on all elements, as squeue prints it' '
	array=$(sbatch --parsable --cpus-per-task=1 --hold --array=1-2 --wrap true) &&
	later=$(sbatch --parsable --cpus-per-task=1 --dependency="afterok:${array}_*" --wrap true) && squeue -h -j "$later" -o %E >out &&
	says out "^afterok:$array"
'

test_expect_success 'a job of srun has the name of its program, unless it is given one' '
	srun -Q /bin/true && srun -Q -J mine true && gpuq history -h -o NAME >out && says out "^true *$" && says out "^mine *$" && ! grep -q "^job" out
'

# offered COMMAND WORD...: what bash offers there
offered() {
	/bin/bash -c '. ./comp; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
		f=$(complete -p "$1" | sed "s/.*-F \([^ ]*\).*/\1/"); $f "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
		echo "${COMPREPLY[@]}"' bash "$@" 2>/dev/null
}

test_expect_success 'completion offers ended jobs where those are asked for' '
	gpuq completion bash >comp && done=$(gpuq history -h -o JOBID | head -n 1 | tr -d " ") && test -n "$done" &&
	for line in "seff" "gpuq resubmit" "gpuq logs" "gpuq usage -j"; do
		offered $line "" | tr " " "\n" | grep -qx "$done" || { echo "$line"; offered $line ""; return 1; }
	done &&
	for line in "scancel" "gpuq cancel"; do
		offered $line "" >words && ! grep -qw "$done" words || { echo "$line"; return 1; }
	done &&
	offered gpuq resubmit "" >words && ! grep -qw "$held" words && offered gpuq logs "" >words && grep -qw "$held" words &&
	offered scontrol show "" >words && ! grep -q reservation words && stop_gpuqd
'

test_done
