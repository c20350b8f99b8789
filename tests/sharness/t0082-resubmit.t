#!/bin/sh
test_description='resubmit: jobs, arrays and failed elements once more; the job file of a job'
. "$(dirname "$0")/lib.sh"

# indices ID: of an array, whichever of its elements have started
indices() {
	gpuq status "$1" --json | json array.indices | sort -u
}

test_expect_success 'start' '
	mkdir bin sub && for name in sbatch scontrol; do ln -s "$test_build/gpuq/gpuq" bin/$name || return 1; done &&
	PATH=$PWD/bin:$PATH && export PATH && start_gpuqd
'

test_expect_success 'a job runs again as it was: script, arguments, directory, environment' '
	cat >job.sh <<-\END &&
	#!/bin/sh
	#SBATCH -J again --cpus-per-task=1 --mem=64M --comment="as it was"
	echo "$PWD $1 $COLOUR $(cat what)"
	END
	echo first >sub/what && (cd sub && COLOUR=blue sbatch --parsable -o ../out.txt ../job.sh word) >id && a=$(cat id) && exits 0 gpuq wait "$a" &&
	echo second >sub/what && b=$(COLOUR=red gpuq resubmit --parsable "$a") && test "$b" -gt "$a" && exits 0 gpuq wait "$b" &&
	printf "%s\n" "$PWD/sub word blue first" "$PWD/sub word blue second" | sort >want && sort out.txt >got &&
	{ test_cmp want got || says got "blue second"; } && job_is "$b" resubmit_of "$a" && job_is "$b" name again && job_is "$b" comment "as it was" &&
	job_is "$a" resubmit_of null && job_is "$a" state COMPLETED
'

test_expect_success 'options win over what was submitted' '
	c=$(gpuq resubmit --parsable "$a" --hold -J other -t 7) && job_is "$c" name other && job_is "$c" time_limit_s 420 && job_is "$c" reason HeldUser &&
	gpuq resubmit --dry-run "$a" >out && says out "^Would submit again to queue default" && gpuq cancel "$c" &&
	gpuq resubmit --dry-run --json "$a" >out && test "$(json resubmit_of <out)" = "$a" && exits 254 gpuq resubmit 999 && exits 2 gpuq resubmit &&
	exits 1 gpuq resubmit "$a" -q nowhere && says err "nowhere"
'

test_expect_success 'of an array all, one element, or those that failed' '
	a=$(sh_job "[ \$GPUQ_ARRAY_TASK_ID -lt 3 ] || [ -e mended ]" -a 1-5%4) && exits 1 gpuq wait "$a" &&
	touch mended && b=$(gpuq resubmit --parsable --failed "$a") && test "$(indices "$b")" = 3-5 && exits 0 gpuq wait "$b" &&
	exits 0 gpuq resubmit --failed "$b" && says err "nothing of it has failed" && test ! -s out &&
	c=$(gpuq resubmit --parsable "${a}_4") && test "$(indices "$c")" = 4 && exits 0 gpuq wait "$c" &&
	d=$(gpuq resubmit --parsable "$a") && test "$(indices "$d")" = 1-5 && gpuq queue -h -a -j "$d" -o JOBID >out && exits 0 gpuq wait "$d"
'

test_expect_success 'some elements of an array, by the form that cancel takes' '
	e=$(gpuq resubmit --parsable "${a}_[2,4-5]") && test "$(indices "$e")" = 2,4-5 && exits 0 gpuq wait "$e" &&
	f=$(gpuq resubmit --parsable --failed "${a}_[2-3,5]") && test "$(indices "$f")" = 3,5 && exits 0 gpuq wait "$f" &&
	exits 0 gpuq resubmit --failed "${a}_[1-2]" && says err "nothing of it has failed" &&
	exits 254 gpuq resubmit "${a}_[5-6]" && says err "job $a has no element 6" && exits 1 gpuq resubmit "${a}_[x]" && says err "expected" &&
	gpuq status "${a}_[2,4]" --json >out && test "$(json array_index <out | tr "\n" " ")" = "2 4 " && exits 0 gpuq why "${a}_[2,4]" &&
	exits 2 gpuq logs "${a}_[2,4]" && says err "expected the id of one job"
'

test_expect_success 'what never started of a cancelled array has failed as well' '
	a=$(sh_job "exit 0" -a 1-4 --hold) && gpuq release "${a}_2" && job_becomes "${a}_2" COMPLETED && gpuq cancel "$a" && exits 252 gpuq wait "$a" &&
	b=$(gpuq resubmit --parsable --failed "$a") && test "$(indices "$b")" = 1,3-4 && exits 0 gpuq wait "$b"
'

test_expect_success 'scontrol requeue of an ended job means the same' '
	exits 3 sbatch --parsable --wait --wrap "exit 3" && a=$(cat out) && scontrol requeue "$a" >out && says out "^Submitted batch job [0-9]+$" &&
	b=$(sed "s/.* //" out) && exits 3 gpuq wait "$b" && job_is "$b" resubmit_of "$a" && exits 1 scontrol requeue 999
'

test_expect_success 'status -o yaml is the job file, which may be submitted' '
	cat >job.yaml <<-\END &&
	name: filed
	command: [sh, -c, "exit 6"]
	gpus: 1
	time: 1h
	retry: {limit: 1, on: ["exit:75"]}
	labels: {team: a}
	END
	a=$(submit job.yaml) && exits 6 gpuq wait "$a" && gpuq status -o yaml "$a" >again.yaml && says again.yaml "^name: filed$" && ! grep context again.yaml &&
	b=$(submit again.yaml) && exits 6 gpuq wait "$b" && gpuq status -o yaml "$b" >third.yaml && test_cmp again.yaml third.yaml &&
	gpuq status -o json "$a" >out && test "$(json time <out)" != "" && exits 2 gpuq status -o xml "$a" && exits 254 gpuq status -o yaml 999
'

test_expect_success ROOT 'others may not see it' '
	open_to_all && exits 1 as nobody gpuq status -o yaml "$a" && says err "belongs to another user" && exits 1 as nobody gpuq resubmit "$a"
'

test_expect_success 'it is there after kill -9' '
	kill_gpuqd && start_gpuqd && job_is "$b" resubmit_of null && c=$(gpuq resubmit --parsable "$a") && exits 6 gpuq wait "$c" && job_is "$c" resubmit_of "$a"
'

test_done
