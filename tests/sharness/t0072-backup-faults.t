#!/bin/sh
test_description='copies that fail: told by status and doctor; what a hanging target, kill -9 and the clock leave; verify'
. "$(dirname "$0")/lib.sh"

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

copies() {
	(cd copies && ls gpuq-*Z.mdb 2>/dev/null)
}

has_a_copy() {
	test -n "$(copies)"
}

# backup_is MEMBER VALUE: of what gpuq status tells of backups
backup_is() {
	test "$(gpuq status --json | json "backup.$1")" = "$2"
}

# A gap in the segments, whose folder was emptied, may call for a second one at once.
lists_a_copy() {
	test "$(gpuq status --json | json backup.copies)" -ge 1
}

# asks COMMAND WORDS...: it prints WORDS
asks() {
	asks_command=$1
	shift
	gpuq $asks_command >asks.out 2>&1
	grep -Eq -e "$*" asks.out
}

test_expect_success 'without backup: nothing is told, and list says why' '
	start_gpuqd && test "$(gpuq status --json | json backup)" = null && gpuq doctor >out && ! grep -q backup out &&
	exits 1 gpuq backup list && says err "automatic backups are not configured" && exits 1 gpuq backup verify && stop_gpuqd
'

test_expect_success 'a target that is not there: status and doctor tell it, and list the reason' '
	printf "backup: {to: %s, every: 1s, audit_every: 1s}\n" "$PWD/copies" >backup.yaml && start_gpuqd --config backup.yaml &&
	wait_for 60 asks doctor "^warning +backup.*have failed since .*copies" && asks status "^Backup +failing since .*copies" &&
	test "$(gpuq status --json | json backup.failed)" -ge 1 && exits 1 gpuq backup list && says err "not been listed yet: .*copies"
'

test_expect_success 'twice the interval without a copy is bad' '
	wait_for 60 asks doctor "^bad +backup.*older than twice"
'

test_expect_success ROOT 'to others it names no paths' '
	open_to_all && as nobody env HOME=/ gpuq status >out && says out "^Backup +failing" && ! grep -q copies out
'

test_expect_success 'it comes back by itself, and all is well' '
	mkdir copies && wait_for 60 has_a_copy && wait_for 60 asks doctor "^ok +backup .* copies, the last of 20" && backup_is failed 0 &&
	backup_is last_error null && gpuq status >out && ! grep -q "^Backup" out
'

test_expect_success 'a copy is audited by itself; list shows it' '
	wait_for 60 asks "status --json" "\"audit\":\"whole: [0-9]+ records\"" && wait_for 60 asks "backup list" "gpuq-.*Z.mdb +20.* .iB.* 1/[0-9]+ .*whole: [0-9]+ records" &&
	gpuq backup list --json >list.json && /usr/bin/python3 "$test_source/tests/sharness/check_json.py" "$test_source/man/gpuq-json.5" Backup <list.json &&
	gpuq backup list --json | json name | sort >listed && test -s listed
'

test_expect_success 'the manifest is one for sha256sum' '
	stop_gpuqd && name=$(copies | tail -n 1) && (cd copies && sha256sum -c "$name.sha256") && says "copies/$name.sha256" "^# position 1/[0-9]+"
'

test_expect_success 'a copy whose bytes changed is named by verify, list, status and doctor' '
	sed "s/1s/1h/" backup.yaml >hourly.yaml && printf X | dd of="copies/$name" bs=1 seek=20000 conv=notrunc 2>dd.err &&
	start_gpuqd --config hourly.yaml && wait_for 60 backup_is listed true && exits 1 gpuq backup verify && says out "^$name: damaged: its SHA-256" &&
	gpuq backup list >out && says out "$name .*damaged: its SHA-256" && asks status "^Backup +a copy is damaged" &&
	exits 1 gpuq doctor && says out "^bad +backup +a copy is damaged: $name"
'

test_expect_success 'what was found stays after a restart; one that is cut short; one that is not there' '
	stop_gpuqd && says "copies/$name.sha256" "^# audited .* damaged" && start_gpuqd --config hourly.yaml && wait_for 60 backup_is damaged true &&
	truncate -s 8192 "copies/$name" && exits 1 gpuq backup verify "$name" && says out "cut short, 8192 of [0-9]+ bytes" &&
	exits 1 gpuq backup verify none.mdb && says err "no copy is called none.mdb" && stop_gpuqd
'

test_expect_success 'without its manifest it is opened all the same' '
	rm "copies/$name.sha256" && start_gpuqd --config hourly.yaml && wait_for 60 backup_is listed true && exits 1 gpuq backup verify "$name" &&
	says out "damaged: " && stop_gpuqd && rm copies/*
'

test_expect_success 'a file called list or verify is ./list' '
	start_gpuqd && gpuq backup ./list && test -s list && exits 2 gpuq backup ./list more && stop_gpuqd
'

test_expect_success FAILPOINTS 'a target that hangs: jobs go on, it is told, and SIGTERM ends the daemon' '
	mkdir -p copies && GPUQ_FAILPOINT=backup.put.part=delay:3600000 start_gpuqd --config backup.yaml &&
	wait_for 60 asks doctor "^bad +backup +the copy of a backup has not ended since .*" && says asks.out "check whether .*copies answers" &&
	asks status "^Backup +the copy has not ended since" && j=$(sh_job true) && exits 0 gpuq wait "$j" && exits 0 stop_gpuqd &&
	says gpuqd.log "backup.abandoned"
'

for place in backup.put.part backup.put.whole; do
	test_expect_success FAILPOINTS "kill -9 at $place: nothing half is left, and the next start makes a copy" '
		rm -f copies/* copies/.gpuq* && GPUQ_FAILPOINT=$place=kill gpuqd --state "$PWD/state" --listen "$GPUQ_SERVER" --cluster local --gpus 4 \
			--config backup.yaml >>gpuqd.log 2>&1 3>&- 4>&- 5>&-
		test $? = 137 && ls -A copies >left && grep -q "part\$" left && ! grep -q "^gpuq" left && start_gpuqd --config hourly.yaml &&
		wait_for 60 lists_a_copy && exits 0 gpuq backup verify && stop_gpuqd && ls -A copies >left && ! grep -q "part\$" left
	'
done

test_expect_success 'copies of a time to come, after the clock was set back, neither count nor go' '
	id=$(copies | tail -n 1 | sed "s/^gpuq-//; s/-[^-]*\$//") && now=$(copies | tail -n 1) && printf "backup: {to: %s, every: 1s, keep: {hourly: 1, daily: 0}}\n" "$PWD/copies" >one.yaml &&
	for t in 20900105T100000Z 20900104T100000Z; do >"copies/gpuq-$id-$t.mdb" || return 1; done &&
	start_gpuqd --config one.yaml && wait_for 60 eval "! test -e copies/$now" && stop_gpuqd && copies >left &&
	test "$(grep -c 2090 left)" = 2 && test "$(grep -vc 2090 left)" -ge 1
'

test_done
