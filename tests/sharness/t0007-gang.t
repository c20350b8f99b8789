#!/bin/sh
test_description='gangs: all of its pods or none'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' '
	start_gpuqd
'

test_expect_success 'all pods run together, each with its rank' '
	mkdir met && cat >gang.yaml <<-END &&
	name: gang
	pods: 4
	gpus: 1
	command:
	- sh
	- -c
	- |
	  touch "$PWD/met/\$RANK"
	  i=0
	  until [ \$(ls "$PWD/met" | wc -l) = 4 ]; do
	    i=\$((i + 1)); [ \$i -lt 600 ] || exit 9; sleep 0.05
	  done
	  echo "rank \$RANK of \$WORLD_SIZE"
	END
	id=$(submit gang.yaml) && exits 0 gpuq wait "$id" && ls met >got && printf "0\n1\n2\n3\n" >want && test_cmp want got &&
	job_is "$id" pod_count 4 && job_is "$id" gpus 4
'

test_expect_success 'each has a device of its own' '
	gpuq status "$id" --json | json pods >pods.json &&
	/usr/bin/python3 -c "
import json
pods = json.load(open(\"pods.json\"))
used = [d[\"index\"] for p in pods for d in p[\"devices\"]]
assert sorted(used) == [0, 1, 2, 3], used
assert sorted(p[\"index\"] for p in pods) == [0, 1, 2, 3], pods
"
'

test_expect_success 'the log of one pod' '
	gpuq logs --pod 2 "$id" >out && says out "^rank 2 of 4$" && test "$(wc -l <out)" = 1
'

test_expect_success 'none starts while one has no place' '
	rm -f met/* && one=$(sh_job "sleep 300" -g 1) && job_becomes "$one" RUNNING &&
	id=$(submit gang.yaml) && wait_for 60 job_is "$id" reason Resources &&
	small=$(sh_job "exit 0" -g 1) && wait_for 60 job_is "$id" reason Resources && test -z "$(ls met)" &&
	gpuq cancel "$one" && job_becomes "$id" COMPLETED && job_becomes "$small" COMPLETED
'

test_expect_success 'the pod that failed first gives the code, and the others leave' '
	cat >fails.yaml <<-\END &&
	pods: 3
	gpus: 1
	command: [sh, -c, "[ $RANK = 1 ] && exit 21; exec sleep 300"]
	END
	exits 21 gpuq submit --wait fails.yaml && says err "^gpuq-result: .*\"state\":\"FAILED\"" &&
	wait_for 60 eval "test \$(free_gpus) = 4"
'

test_expect_success 'a gang survives a kill of the daemon' '
	rm -f met/* go && cat >long.yaml <<-END &&
	pods: 3
	gpus: 1
	command: [sh, -c, "echo x >>$(printf %s "$TMPDIR")/ran.\$RANK; until [ -e $TMPDIR/go ]; do sleep 0.05; done"]
	END
	id=$(submit long.yaml) && job_becomes "$id" RUNNING &&
	wait_for 60 eval "test -e $TMPDIR/ran.0 -a -e $TMPDIR/ran.1 -a -e $TMPDIR/ran.2" &&
	kill_gpuqd && start_gpuqd && job_is "$id" state RUNNING && touch "$TMPDIR/go" &&
	exits 0 gpuq wait "$id" && test "$(cat "$TMPDIR"/ran.* | wc -l)" = 3
'

test_expect_success 'roles: groups of different pods in one gang' '
	cat >roles.yaml <<-\END &&
	groups:
	- {name: worker, pods: 2, gpus: 1, command: ["sh", "-c", "echo worker"]}
	- {name: launcher, pods: 1, command: ["sh", "-c", "echo launcher"]}
	END
	id=$(submit roles.yaml) && exits 0 gpuq wait "$id" &&
	gpuq logs "$id" >out && test "$(grep -c worker out)" = 2 && test "$(grep -c launcher out)" = 1 &&
	job_is "$id" pod_count 3 && job_is "$id" gpus 2
'

test_expect_success 'one that can never fit says so' '
	id=$(printf "pods: 5\ngpus: 1\ncommand: [\"true\"]\n" | submit - 2>err) &&
	wait_for 60 job_is "$id" reason Unsatisfiable && gpuq cancel "$id" && stop_gpuqd
'

test_done
