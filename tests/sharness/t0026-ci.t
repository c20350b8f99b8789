#!/bin/sh
test_description='the contract with CI: the examples as they are, clients that die, servers that come back'
. "$(dirname "$0")/lib.sh"

# The commands of a pipeline file: blocks behind "run: |", items of "script:".
commands() {
	/usr/bin/python3 - "$test_source/examples/ci/$1" "$2" <<-\END
	import re, sys
	lines, want, out = open(sys.argv[1]).read().split("\n"), sys.argv[2], []
	i = 0
	while i < len(lines):
	    m = re.match(r"( *)(- )?" + want + r": *\|?$", lines[i])
	    i += 1
	    if not m: continue
	    depth = len(m.group(1))
	    block = []
	    while i < len(lines) and (not lines[i].strip() or len(lines[i]) - len(lines[i].lstrip()) > depth):
	        block.append(re.sub(r"^ *- ", "", lines[i]) if want != "run" else lines[i].strip())
	        i += 1
	    out.append("\n".join(block).strip())
	print("\0".join(out), end="")
	END
}

# step N FILE WORD: the N-th block, run in the source folder as the runner would
step() {
	commands "$2" "$3" | /usr/bin/python3 -c 'import sys; print(sys.stdin.read().split("\0")[int(sys.argv[1])])' "$1" >step.sh &&
	test -s step.sh && (cd "$test_source" && sh -e "$OLDPWD/step.sh")
}

test_expect_success 'start' '
	start_gpuqd
'

test_expect_success 'plain shell: the exit code is that of the tests' '
	exits 0 "$test_source/examples/ci/run.sh" one && says out "devices 0" && last_result COMPLETED 0 &&
	GPU_TEST_COMMAND="exit 7" exits 7 "$test_source/examples/ci/run.sh" two && last_result FAILED 7
'

test_expect_success 'a step that is repeated finds its job' '
	GPU_TEST_COMMAND="exit 7" exits 7 "$test_source/examples/ci/run.sh" two && last_result FAILED 7 &&
	test "$(gpuq history -h -n gpu-tests | wc -l)" = 2
'

test_expect_success 'GitHub Actions' '
	export KEY=github-1-1 GITHUB_SHA=abc && exits 0 step 0 github-actions.yml run && says out "testing abc" &&
	exits 0 step 1 github-actions.yml run && says out gpu-tests &&
	id=$(submit --hold --label "ci=$KEY" "$test_source/examples/ci/gpu-tests.sh") &&
	other=$(submit --hold --label ci=github-1-2 "$test_source/examples/ci/gpu-tests.sh") &&
	exits 0 step 2 github-actions.yml run && job_is "$id" state CANCELLED && job_is "$other" state PENDING && gpuq cancel "$other"
'

test_expect_success 'GitLab CI' '
	export CI_JOB_ID=5 CI_COMMIT_SHA=def && exits 0 step 0 gitlab-ci.yml script && says out "testing def" &&
	mine=$(submit --hold --label ci=gitlab-5 --wrap true) other=$(submit --hold --label ci=gitlab-6 --wrap true) &&
	exits 0 step 0 gitlab-ci.yml after_script && job_is "$mine" state CANCELLED && job_is "$other" state PENDING && gpuq cancel "$other"
'

test_expect_success 'a full cluster: 248 in time, and the job is cancelled' '
	full=$(sh_job "sleep 300" -g 4) && job_becomes "$full" RUNNING &&
	START_TIMEOUT=1s exits 248 "$test_source/examples/ci/run.sh" three && says err "no GPU" &&
	says err "gpuq-result.*CANCELLED" && gpuq cancel "$full"
'

test_expect_success 'output and the exit code survive a restart of the daemon' '
	cat >slow.sh <<-\END &&
	#!/bin/sh
	for i in 1 2 3 4 5 6 7 8; do echo "line $i"; sleep 0.4; done
	exit 5
	END
	{ { gpuq run slow.sh >slow.out 2>slow.err; echo $? >slow.code; } & } &&
	wait_for 60 grep -q "line 2" slow.out && kill_gpuqd && start_gpuqd && wait_for 60 test -s slow.code &&
	test "$(cat slow.code)" = 5 && test "$(cat slow.out)" = "$(for i in 1 2 3 4 5 6 7 8; do echo "line $i"; done)" &&
	cp slow.err err && last_result FAILED 5
'

test_expect_success 'nothing of the output is lost or said twice, however often the daemon dies' '
	cat >many.sh <<-\END &&
	#!/bin/sh
	for i in $(seq 1 2000); do echo "line $i"; case $i in *00) sleep 0.2 ;; esac; done
	printf "no end of line"
	exit 7
	END
	{ seq 1 2000 | sed "s/^/line /"; printf "no end of line"; } >want && rm -f run.code wait.code logs.code &&
	{ { gpuq run many.sh >run.out 2>run.err; echo $? >run.code; } & } &&
	{ { gpuq submit --wait many.sh >wait.out 2>wait.err; echo $? >wait.code; } & } &&
	wait_for 60 grep -q "line 50" run.out && id=$(sed -n "s/.*submitted job //p" run.err) && { { gpuq logs -f "$id" >logs.out; echo $? >logs.code; } & } &&
	wait_for 60 grep -q "line 150" run.out && wait_for 60 test -s logs.out && kill_gpuqd && start_gpuqd && sleep 1 && kill_gpuqd && start_gpuqd &&
	wait_for 60 test -s run.code && wait_for 60 test -s wait.code && wait_for 60 test -s logs.code &&
	test "$(cat run.code wait.code logs.code | tr "\n" " ")" = "7 7 0 " && test_cmp want run.out && test_cmp want logs.out &&
	cp wait.err err && last_result FAILED 7
'

test_expect_success 'a client that is killed leaves no job behind' '
	cat >long.sh <<-\END &&
	#!/bin/sh
	sleep 300
	END
	{ gpuq run --lease 5s long.sh >/dev/null 2>&1 & } && client=$! && wait_for 60 eval "gpuq queue -h -n long.sh -t R | grep -q ." &&
	id=$(gpuq queue -h -n long.sh -o JOBID | tr -d " ") && kill -KILL $client &&
	wait_for 60 grep -q "job.lease job=$id" gpuqd.log && job_becomes "$id" CANCELLED
'

test_expect_success 'stop' '
	stop_gpuqd
'

test_done
