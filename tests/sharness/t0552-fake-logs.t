#!/bin/sh
test_description='logs_keep on the fake cluster: output outlives the pods, within its bounds, for its owner'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

no_pods() {
	test "$(fake /api/v1/namespaces/default/pods items)" = "[]"
}

# ended 'ANNOTATION ...' [option...]: a job that runs to its end and whose pods are gone; prints its id
ended() {
	ended_id=$(fake_job "$@") && gpuq wait "$ended_id" >&2 && wait_for 60 no_pods >&2 && echo "$ended_id"
}

test_expect_success 'a queue that keeps output, one that does not' '
	printf "version: 1\nqueues:\n- {name: keeps, quota: 4, logs_keep: {time: 1d, size: 4Ki}}\n- {name: not, quota: 4}\n" >site.yaml && printf "finished_pod_keep: 0s\n" >now.yaml &&
	start_fake && start_fake_gpuqd --site "$PWD/site.yaml" --config "$PWD/now.yaml" &&
	printf "version: 1\nlogs_keep: {size: 1Mi}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:2:.*time"
'

test_expect_success 'gpuq logs of a job whose pod is gone, of a job that ends by itself and of one that is cancelled' '
	a=$(ended "log=hello run=1s" -p keeps) && gpuq logs "$a" >out && says out "^hello" &&
	b=$(ended "log=hello run=1s" -p not) && exits 1 gpuq logs "$b" && c=$(fake_job "log=going hang=true slow-exit=2s" -p keeps) && job_becomes "$c" RUNNING 60 &&
	gpuq cancel "$c" && job_becomes "$c" CANCELLED 60 && wait_for 60 eval "gpuq logs $c | grep going"
'

test_expect_success 'also of elements of an array and the pods of a gang, each its own, and after a kill' '
	d=$(ended "log=element run=1s" -p keeps -a 0-2) && e=$(ended "log=member run=1s" -p keeps --pods 2) && kill_gpuqd && start_fake_gpuqd --config "$PWD/now.yaml" &&
	gpuq logs "${d}_2" >out && says out "^element" && gpuq logs "$e" >out && test "$(grep -c member out)" = 2 && test "$(ls state/logs | grep -c "\.times$")" = 7
'

test_expect_success 'a script with lines of Slurm that is ended says so at the end of what is kept, as its pod cannot' '
	printf "#!/bin/sh\n#SBATCH -c 1 -t 0:02\n:\n" >script.sh && notes="--image test --annotation gpuq.test/log=going --annotation gpuq.test/hang=true --annotation gpuq.test/slow-exit=2s" &&
	g=$(submit $notes -p keeps script.sh) && exits 251 gpuq wait "$g" && wait_for 60 eval "gpuq logs $g >out && grep slurmstepd out" && cat out && says out "^going" &&
	says out "^slurmstepd: error: [*]{3} JOB $g ON [^ ]+ CANCELLED AT [0-9-]{10}T[0-9:]{8} DUE TO TIME LIMIT [*]{3}$" && test "$(grep -c slurmstepd out)" = 1 &&
	printf "#!/bin/sh\n:\n" >plain.sh && h=$(submit $notes -t 0:02 -p keeps plain.sh) && exits 251 gpuq wait "$h" && wait_for 60 no_pods && wait_for 60 eval "gpuq logs $h >out" && says out "^going" && ! grep slurmstepd out &&
	i=$(submit $notes -p keeps -t 5 script.sh) && job_becomes "$i" RUNNING 60 && gpuq cancel "$i" && job_becomes "$i" CANCELLED 60 && wait_for 60 eval "gpuq logs $i >out && grep slurmstepd out" && tail -n 1 out >end && says end "JOB $i ON .* CANCELLED AT [^ ]* [*]{3}$" &&
	gpuq logs --timestamps "$i" >out && says out "^[0-9-]{10}T[0-9:.]*Z slurmstepd"
'

test_expect_success 'of much output the end is kept' '
	f=$(ended "log=$(printf "%06000d" 1)end run=1s" -p keeps) && gpuq logs "$f" >out && says out "^gpuq: the first [0-9]+ bytes are not kept$" && says out "0001end" && test "$(wc -c <out)" -lt 4300 &&
	gpuq logs --tail 1 "$f" >out && test "$(wc -l <out)" = 1
'

no_harm_was_done

test_done
