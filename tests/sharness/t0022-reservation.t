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
	other=$(sh_job "exit 0" -p all -g 1 -t 10m) && wait_for 60 job_is "$other" reason Reservation &&
	job "$other" reasons >out && says out demo
'

test_expect_success 'its queue may use it' '
	own=$(sh_job "exit 0" -p vip -g 3 -t 10m) && job_becomes "$own" COMPLETED && job_is "$other" reason Reservation
'

test_expect_success 'what others leave is not its own' '
	gpuq cancel "$small" && job_becomes "$other" COMPLETED
'

test_expect_success ROOT 'of users: only they may use it' '
	gpuq reserve theirs -t 30m -g 1 --users nobody && open_to_all &&
	mine=$(sh_job "exit 0" -p all -g 1 -t 10m) && wait_for 60 job_is "$mine" reason Reservation &&
	theirs=$(printf "command: [\"true\"]\nqueue: all\ngpus: 1\ntime: 10m\nchdir: /\n" | as nobody env HOME=/ gpuq submit --parsable -) &&
	job_becomes "$theirs" COMPLETED && job_is "$mine" reason Reservation && gpuq reserve --delete theirs && job_becomes "$mine" COMPLETED
'

# What the calendar promises has to be there.
later() {
	date -u -d "$1" +%Y-%m-%dT%H:%M:00Z
}

test_expect_success 'AC-CAL-3: a second reservation of 16 of 24 is refused with the earliest start, one of 8 is not' '
	stop_gpuqd && rm -r state && start_gpuqd --gpus 24 --site site.yaml && wait_for 60 eval "test \$(free_gpus) = 24" &&
	gpuq reservations -h -o NAME >out && gpuq apply --prune -f /dev/stdin <<-END &&
	{version: 1, queues: [{name: vip}, {name: all}]}
	END
	exits 0 gpuq reserve first --start "$(later "+2 days")" --duration 4h --gpus 16 --queue vip &&
	exits 1 gpuq reserve second --start "$(later "+2 days +1 hour")" --duration 4h --gpus 16 --queue all &&
	says err "second: 8 of 16 devices are free at $(later "+2 days +1 hour" | sed "s/Z$//").* beside first" &&
	says err "earliest start that fits: $(later "+2 days +4 hours" | sed "s/:[0-9][0-9]Z$//")" &&
	exits 0 gpuq reserve second --start "$(later "+2 days +1 hour")" --duration 4h --gpus 8 --queue all
'

test_expect_success 'AC-CAL-3: the same through apply, with and without --dry-run; nothing is stored' '
	printf "version: 1\nreservations:\n- {name: third, start: %s, duration: 1h, gpus: 1, queue: all}\n" "$(later "+2 days +2 hours")" >third.yaml &&
	exits 1 gpuq apply -f third.yaml --dry-run && says err "third: 0 of 1 devices are free" &&
	exits 1 gpuq apply -f third.yaml && says err "beside second" && gpuq reservations -h -o NAME >out && ! grep third out &&
	printf "version: 1\nreservations:\n- {name: second, gpus: 9}\n" >more.yaml && exits 1 gpuq apply -f more.yaml &&
	says err "second: 8 of 9 devices are free .* beside first" &&
	printf "version: 1\nreservations:\n- {name: second, gpus: 7}\n" >less.yaml && exits 0 gpuq apply -f less.yaml && exits 0 gpuq apply -f third.yaml
'

test_expect_success 'one for machines that are still to come, and maintenance, are nobody'"'"'s conflict' '
	exits 0 gpuq reserve cloud --start "$(later "+20 days")" --duration 4h --gpus 64 --queue all &&
	printf "version: 1\nreservations:\n- {name: repair, start: %s, duration: 1h, nodes: [%s], flags: [maintenance]}\n" \
		"$(later "+2 days")" "$(gpuq nodes -h -o NODE | head -n 1)" >repair.yaml && exits 0 gpuq apply -f repair.yaml
'

test_expect_success 'without a name it gets one; its name changes it, by the same rules' '
	exits 0 gpuq reserve -g 2 -t 1h --start "$(later "+30 days")" -q vip && says out "reservation/vip-1 added" &&
	exits 0 gpuq reserve -g 2 -t 1h --start "$(later "+31 days")" -q vip && says out "reservation/vip-2 added" &&
	exits 0 gpuq reserve vip-1 --start "$(later "+32 days")" && says out "reservation/vip-1 changed" &&
	gpuq reservations -h -o DURATION,GPUS vip-1 >out && says out "1h *2" &&
	exits 1 gpuq reserve vip-1 --start "$(later "+2 days +1 hour")" -g 24 && says err "earliest start that fits" &&
	exits 0 gpuq reserve vip-1 -w "$(gpuq nodes -h -o NODE | head -n 1)" && gpuq reservations -h --json vip-1 >out && says out "\"nodes\":\[\"" &&
	exits 2 gpuq reserve vip-1 && exits 2 gpuq reserve other --start now && exits 2 gpuq reserve --delete
'

test_expect_success 'the repetition ends, and leaves days out' '
	exits 1 gpuq reserve course -g 1 -t 1h -q vip --until now+9d && says err "until: expected every, or the flag" &&
	exits 1 gpuq reserve course -g 1 -t 1h -q vip --flags daily --except 24.12.2026 && says err "except\[0\]: expected a day such as" &&
	exits 0 gpuq reserve course -g 1 -t 1h -q vip --flags daily --start "$(later "+40 days 08:00")" \
		--until "$(later "+44 days 00:00")" --except "$(date -u -d "+41 days" +%Y-%m-%d)" &&
	gpuq reservations --calendar --days 60 --json course | python3 -c "
import json, sys
starts = [o[\"start_time\"][:10] for o in json.loads(sys.stdin.read())[\"occurrences\"]]
print(len(starts), starts)" >out && says out "^3 " && ! grep "$(date -u -d "+41 days" +%Y-%m-%d)" out
'

test_expect_success 'the calendar shows devices and days, by pool' '
	gpuq reservations --calendar --days 60 course vip-1 >out && says out "^pool default, 24 GPUs" && says out "^any pool" &&
	says out "^  course .* ~1 " && says out "^  vip-1 .* ~24 " && awk "length > 80 { exit 1 }" out &&
	exits 2 gpuq reservations --calendar --days 0 && says err "from 1 to 366"
'

test_done
