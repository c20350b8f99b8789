#!/bin/sh
test_description='gpuq usage shows GPU-minutes with the same decimals; --json has them whole'
. "$(dirname "$0")/lib.sh"

test_expect_success 'used and left, of a queue and of its users' '
	printf "version: 1\nqueues:\n- {name: lab, quota: 4, budget: {gpu_minutes: 100, period: month}}\n" >site.yaml && start_gpuqd --gpus 4 --site "$PWD/site.yaml" &&
	id=$(sh_job "until [ -e go ]; do sleep 0.1; done" -g 1 -p lab -t 10) && job_becomes "$id" RUNNING && gpuq usage lab -h -o QUEUE,USER,USED,COMMITTED,LEFT >out &&
	says out "^lab +- +[0-9]+\.[0-9][0-9] +[0-9]+\.[0-9][0-9] +[0-9]+\.[0-9][0-9]$" && touch go && gpuq wait "$id" && gpuq usage lab -h -o BUDGET,USED,LEFT >out && says out "^ *100 +0\.[0-9][0-9] +(99|100)\.[0-9][0-9]$" &&
	used=$(gpuq usage lab --json | head -n 1 | json used_gpu_minutes) && test "$used" != 0 && gpuq usage -h -o COMMITTED >out && ! grep "[0-9]\.[0-9]\{3,\}" out && stop_gpuqd
'

test_done
