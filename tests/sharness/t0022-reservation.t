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
	exits 1 gpuq reserve course -g 1 -t 25h -q vip --flags daily && says err "duration: longer than a day, after which it repeats" &&
	exits 1 gpuq reserve course -g 1 -t 1h -q vip --flags daily,weekly && says err "flags: expected either daily or weekly" &&
	exits 1 gpuq reserve course -g 1 -t 1h -q vip --release-after 2h && says err "release_after: longer than its duration" &&
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

test_expect_success 'a time zone keeps its wall clock over the change of clocks, and days are its own' '
	exits 1 gpuq reserve seminar -g 1 -t 2h -q vip --flags daily --timezone Europe/Berlyn && says err "timezone: expected a time zone" &&
	exits 0 gpuq reserve seminar -g 1 -t 2h -q vip --flags daily --timezone "CET-1CEST,M3.5.0,M10.5.0/3" \
		--start "2027-03-26T09:00" --until "2027-04-01" --except 2027-03-29 &&
	gpuq reservations --calendar --days 366 --json seminar | python3 -c "
import json, sys
v = json.loads(sys.stdin.read())
print(v[\"timezone\"], [o[\"start_time\"][5:16] for o in v[\"occurrences\"]])" >out &&
	says out "03-26T08:00.*03-27T08:00.*03-28T07:00.*03-30T07:00.*03-31T07:00" && ! grep 03-29 out &&
	gpuq export >exported.yaml && exits 0 gpuq apply -f exported.yaml && says out "Nothing changes" && gpuq reserve --delete seminar
'

test_expect_success 'a zone of this machine has its rule beside its name' '
	if test ! -e /usr/share/zoneinfo/Europe/Berlin; then return 0; fi &&
	exits 0 gpuq reserve seminar -g 1 -t 2h -q vip --flags weekly --timezone Europe/Berlin --start "2027-03-26T09:00" &&
	gpuq export | grep -A1 Europe/Berlin >out && says out "CET-1CEST,M3.5.0,M10.5.0/3" &&
	gpuq reservations -h -o TIMEZONE,START seminar >out && says out "Europe/Berlin" &&
	exits 1 gpuq reserve seminar --timezone Africa/Casablanca && says err "by the same rule each year" && gpuq reserve --delete seminar
'

window() {
	gpuq reserve block --external --pool default -w "$1" -t 1d -q vip --start "$(date -u -d "-1 day +$2 minutes" +%Y-%m-%dT%H:%M:%SZ)"
}

test_expect_success 'AC-CAL-2: nodes of a cloud: late while they are not all there, and no job that would outlast them' '
	for r in $(gpuq reservations -a -h -o NAME); do gpuq reserve --delete "$r" || return 1; done &&
	exits 1 gpuq reserve block --external --pool default -w 2 -t 23h -q vip && says err "duration: expected 1 to 90 days" &&
	exits 1 gpuq reserve block --external --pool default -w 2 -t 2d -q vip --flavor default && says err "flavor: expected a pool and a count alone" &&
	exits 1 gpuq reserve block --external --pool default -w 2 -t 91d -q vip && says err "duration: expected 1 to 90 days" &&
	exits 1 gpuq reserve block --external --pool default -w 2 -t 2d && says err "queue: expected a queue or users" &&
	exits 0 window 2 20 && gpuq reservations -h -o STATE block >out && says out late &&
	exits 0 gpuq reserve block -w 1 && gpuq reservations -h -o STATE block >out && says out active &&
	long=$(sh_job "exit 0" -p vip -g 1 -t 19m) && wait_for 60 job_is "$long" reason Reservation &&
	short=$(sh_job "exit 0" -p vip -g 1 -t 10m) && job_becomes "$short" COMPLETED && job_is "$long" state PENDING &&
	gpuq cancel "$long" && gpuq reserve --delete block
'

test_expect_success 'what became of it: reserved, used, unused, no-shows' '
	start=$(date -u -d "-150 minutes" +%Y-%m-%dT%H:%MZ) && exits 0 gpuq reserve daily -t 1h -g 2 -q all --start "$start" --every 2h &&
	exits 0 gpuq reserve now -t 1h -g 1 -q vip && used=$(sh_job "sleep 1.5" -p vip -g 1 -t 10m) && job_becomes "$used" COMPLETED &&
	gpuq report --by reservation --since 3h --json >out && python3 -c "
import json
rows = {r[\"reservation\"]: r for r in map(json.loads, open(\"out\"))}
d, n = rows[\"daily\"], rows[\"now\"]
assert (d[\"windows\"], d[\"no_shows\"]) == (2, 1) and d[\"gpu_seconds\"] == 0 and d[\"reserved_gpu_seconds\"] > 7000, d
assert (n[\"windows\"], n[\"no_shows\"]) == (1, 0) and n[\"gpu_seconds\"] >= 1.4, n
assert abs(n[\"reserved_gpu_seconds\"] - n[\"gpu_seconds\"] - n[\"unused_gpu_seconds\"]) < 0.01, n" &&
	gpuq report --by reservation >out && says out "^RESERVATION " && says out "^now *vip *1 *0 " &&
	exits 2 gpuq report --by reservation --me && exits 2 gpuq report --by reservation,user && gpuq reserve --delete daily now
'

test_expect_success 'what is idle but spoken for is shown, and until when' '
	exits 0 gpuq reserve later -t 1h -g 3 -q vip && gpuq status >out && says out "^Reserved *3 idle for later until " &&
	exits 0 gpuq reserve --delete later && exits 0 gpuq reserve whole -t 1h --pool default -q vip &&
	gpuq nodes -s >out && says out "reserved.*whole until " && gpuq status --json | python3 -c "
import json, sys
r = json.loads(sys.stdin.read())[\"reserved\"]
assert [x[\"name\"] for x in r] == [\"whole\"] and r[0][\"gpus\"] == 24, r" && exits 0 gpuq reserve --delete whole
'

test_expect_success ROOT 'who may reserve: managers within their quota, users with the right within its limits' '
	open_to_all && gpuq apply --prune -f /dev/stdin <<-END &&
	version: 1
	queues: [{name: vip, quota: 4, managers: [daemon]}, {name: all}]
	users: [{name: nobody, reserve: {gpu_hours: 10, ahead: 7d}}]
	END
	exits 1 as bin gpuq reserve x -t 1h -g 1 -q vip && says err "reservation x: only an operator" &&
	exits 0 as daemon gpuq reserve m1 -t 2h -g 3 -q vip --start now+2h &&
	exits 1 as daemon gpuq reserve m2 -t 2h -g 2 -q vip --start now+3h && says err "would hold 5 devices at one time, its quota is 4" &&
	exits 0 as daemon gpuq reserve m2 -t 2h -g 2 -q vip --start now+4h &&
	exits 1 as daemon gpuq reserve m3 -t 1h -g 1 -q all && exits 1 as daemon gpuq reserve m3 -t 1h -g 1 -q vip --flags maintenance &&
	exits 0 as nobody gpuq reserve u1 -t 2h -g 4 -u nobody --start now+1d &&
	exits 1 as nobody gpuq reserve u2 -t 1h -g 3 -u nobody && says err "nobody would hold 11 GPU-hours, the maximum is 10" &&
	exits 1 as nobody gpuq reserve u2 -t 1h -g 1 -u nobody --start now+8d && says err "at most 7d ahead" &&
	exits 1 as nobody gpuq reserve u2 -t 1h -g 1 -u nobody,daemon && exits 1 as nobody gpuq reserve --delete m1 &&
	exits 1 as daemon gpuq reserve --delete u1 && exits 0 as nobody gpuq reserve u1 -t 1h && exits 0 as nobody gpuq reserve --delete u1 &&
	exits 1 as nobody gpuq queues set vip quota=8 && exits 0 gpuq reserve --delete m1 m2
'

test_expect_success ROOT 'nodes that a pool can get count like those it has: in the limits, and beside other reservations' '
	gpuq apply --prune -f /dev/stdin <<-END &&
	version: 1
	queues: [{name: vip, quota: 4, managers: [daemon]}, {name: all}]
	users: [{name: nobody, reserve: {gpu_hours: 10, ahead: 7d}}]
	flavors: [{name: far, match: {product: X}}]
	pools: [{name: cloud, flavor: far, selector: {pool: cloud}, provisioning: {kind: request, class: x, max_nodes: 2, machine: {gpus: 4, cpus: 8, memory: 8Gi, labels: {pool: cloud}}}}]
	END
	exits 1 as nobody gpuq reserve u1 -t 2h --pool cloud -u nobody && says err "nobody would hold 16 GPU-hours, the maximum is 10" &&
	exits 0 as nobody gpuq reserve u1 -t 1h --pool cloud -u nobody --start now+2h &&
	exits 1 as daemon gpuq reserve m1 -t 1h --pool cloud -q vip --start now+4h && says err "would hold 8 devices at one time, its quota is 4" &&
	exits 1 as daemon gpuq reserve m1 -t 1h -g 4 --pool cloud -q vip --start now+2h && says err "0 of 4 devices are free at .* beside u1" &&
	exits 0 as daemon gpuq reserve m1 -t 1h -g 4 --pool cloud -q vip --start now+4h && gpuq reserve --delete u1 && gpuq reserve --delete m1
'

test_done
