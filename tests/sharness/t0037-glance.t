#!/bin/sh
test_description='gpuq status and gpuq nodes: every device in one state, who is on it, who waits longest'
. "$(dirname "$0")/lib.sh"

# sums: do the states of devices add up to gpus?
sums() {
	gpuq status --json >status.json && /usr/bin/python3 - <<-END
	import json
	v = json.load(open("status.json"))
	assert abs(sum(v["devices"].values()) - v["gpus"]) < 1e-6, v
	END
}

devices() {
	sums && json "devices.$1" <status.json
}

test_expect_success 'start, with half of the devices reserved for somebody' '
	cat >site.yaml <<-END &&
	version: 1
	queues:
	- {name: lab}
	- {name: demo}
	reservations:
	- {name: show, start: $(date -u -d "-1 hour" +%Y-%m-%dT%H:%MZ), duration: 8h, gpus: 2, queue: demo}
	END
	start_gpuqd --site site.yaml && test "$(devices reserved)" = 2 && test "$(devices free)" = 2 &&
	test "$(json oldest_waiting <status.json)" = null
'

test_expect_success 'a job outside of it' '
	one=$(sh_job "sleep 300" -p lab -g 1) && job_becomes "$one" RUNNING &&
	test "$(devices allocated)" = 1 && test "$(devices reserved)" = 2 && test "$(devices free)" = 1
'

test_expect_success 'and one of those it is for' '
	two=$(sh_job "sleep 300" -p demo -g 1) && job_becomes "$two" RUNNING &&
	test "$(devices allocated)" = 2 && test "$(devices reserved)" = 1 && test "$(devices free)" = 1
'

test_expect_success 'who waits longest, those on hold not counted' '
	held=$(sh_job "sleep 300" -p lab -g 4 --hold) && old=$(sh_job "sleep 300" -p lab -g 4) && new=$(sh_job "sleep 300" -p lab -g 4) &&
	wait_for 60 eval "gpuq status --json | json oldest_waiting.job | grep -x $old" &&
	gpuq status >out && says out "^Longest wait +$old of .* in lab, for" && gpuq cancel "$old" "$new" "$held"
'

test_expect_success 'who is on a device' '
	gpuq nodes -h -o gpu,device_state,jobs,users,free >out && says out "^ *[0-3] allocated +$one +$(id -un) +0\$" &&
	test "$(gpuq nodes --json | json devices | /usr/bin/python3 -c "import json, sys; print(*sorted(p[\"job\"] for d in json.load(sys.stdin) for p in d[\"pods\"]))")" = "$one $two"
'

test_expect_success 'devices that are stranded, and why' '
	cores=$(($(gpuq nodes --json | json free_cpu_milli) / 1000)) && test "$(devices stranded)" = 0 && test "$(json stranded_by <status.json)" = "{}" &&
	all=$(sh_job "sleep 300" -p demo -c "$cores") && job_becomes "$all" RUNNING && test "$(devices stranded)" = 2 &&
	test "$(json stranded_by.cpu <status.json)" = 2 && gpuq status >out && says out "^GPUs .*, 2 stranded \(2 without a free core\)" &&
	gpuq nodes -h -s -o FREE_CPUS,CAUSE >out && says out "^ *0 no free core for its free devices" &&
	gpuq cancel "$all" && job_becomes "$all" CANCELLED && test "$(devices stranded)" = 0
'

test_expect_success 'a drained node: its free devices are draining, and the cause is told' '
	node=$(gpuq nodes --json | json name) && gpuq drain "$node" --reason "new fans" &&
	test "$(devices draining)" = 2 && test "$(devices free)" = 0 && test "$(devices reserved)" = 0 &&
	gpuq nodes -h -s -o state,cause >out && says out "^drain +new fans" && gpuq resume "$node" && stop_gpuqd
'

test_done
