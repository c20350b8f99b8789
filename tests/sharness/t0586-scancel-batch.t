#!/bin/sh
test_description='scancel --signal and -b: which processes of a script hear of it'
. "$(dirname "$0")/lib.sh"

mkdir bin && ln -s "$test_build/gpuq/gpuq" bin/scancel && PATH=$PWD/bin:$PATH

test_expect_success 'a script with a handler, and a program of it with another' '
	start_gpuqd && cat >script <<-\END
	#!/bin/sh
	trap "echo script >>heard" USR2
	sh -c "trap \"echo program >>heard\" USR2; echo >ready; while [ ! -e go ]; do sleep 0.05; done" &
	while [ ! -e go ]; do wait; done
	END
'

# heard WORDS: by which the signal was heard
heard() {
	test "$(sort heard 2>/dev/null | tr "\n" " ")" = "$1 " || { cat heard; return 1; }
}

test_expect_success '-b: the shell of the script alone' '
	id=$(submit --cpus 0 script) && wait_for 60 test -e ready && scancel -b -s USR2 "$id" && wait_for 60 heard script &&
	scancel -s USR2 "$id" && wait_for 60 heard "program script script" &&
	scancel --batch --signal=USR2 "$id" && wait_for 60 heard "program script script script" &&
	scancel -f -s USR2 "$id" && wait_for 60 heard "program program script script script script" &&
	touch go && exits 0 gpuq wait "$id"
'

test_expect_success 'B: of --signal is about its own signal: another one reaches the programs, and no shell without a handler' '
	rm -f ready go heard && cat >warned <<-\END &&
	#!/bin/sh
	#SBATCH --time=1:00:03 --signal=B:USR1@3600
	trap "echo script >>heard" USR1
	sh -c "trap \"echo program >>heard\" USR1 USR2; echo >ready; while [ ! -e go ]; do sleep 0.05; done" &
	while [ ! -e go ]; do wait; done
	exit 0
	END
	id=$(submit --cpus 0 warned) && wait_for 60 test -e ready && wait_for 60 heard script && sleep 2 && heard script &&
	scancel -s USR2 "$id" && wait_for 60 heard "program script" && job_is "$id" state RUNNING &&
	scancel -s USR1 "$id" && wait_for 60 heard "program program script script" &&
	touch go && exits 0 gpuq wait "$id"
'

test_expect_success '-b without a signal is of no effect: the job ends' '
	id=$(sh_job "sleep 300") && job_becomes "$id" RUNNING && scancel -b "$id" && job_becomes "$id" CANCELLED && stop_gpuqd
'

test_done
