#!/bin/sh
test_description='the calendar of a site: an amount kept for one queue, named as the reason, and over'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start with a reservation that has begun' '
	start=$(date -u -d "-2 days -1 minute" +%Y-%m-%dT%H:%MZ) && cat >site.yaml <<-END &&
	version: 1
	queues:
	- {name: vip}
	- {name: all}
	reservations:
	- {name: demo, start: $start, duration: 1h, every: 1d, gpus: 3, queue: vip}
	- {name: past, start: 2020-01-01T00:00Z, duration: 1h, gpus: 4, queue: vip}
	- {name: elsewhere, start: $start, duration: 1h, every: 1d, nodes: [nowhere], queue: vip}
	END
	start_gpuqd --site site.yaml
'

test_expect_success 'others have what is left, and are told what keeps the rest' '
	small=$(sh_job "sleep 300" -p all -g 1 -t 10m) && job_becomes "$small" RUNNING &&
	other=$(sh_job "exit 0" -p all -g 1 -t 10m) && wait_for 30 job_is "$other" reason Reservation &&
	job "$other" reasons >out && says out demo
'

test_expect_success 'its queue may use it' '
	own=$(sh_job "exit 0" -p vip -g 3 -t 10m) && job_becomes "$own" COMPLETED && job_is "$other" reason Reservation
'

test_expect_success 'what others leave is not its own' '
	gpuq cancel "$small" && job_becomes "$other" COMPLETED
'

test_done
