#!/bin/sh
test_description='segments between copies: restored to any instant, to a batch, to the newest; gaps, cut and foreign ones are named'
. "$(dirname "$0")/lib.sh"

# restore SOURCE [option...]: into an empty state, as a daemon that is up
restore() {
	rm -rf state/data.mdb state/lock.mdb state/mark state/data.mdb.new && start_gpuqd --restore "$@"
}

# refuses CODE WORDS SOURCE [option...]: to restore; the state stays empty
refuses() {
	refuses_code=$1
	refuses_words=$2
	shift 2
	rm -f state/data.mdb state/lock.mdb state/mark
	exits "$refuses_code" gpuqd --state "$PWD/state" --listen "$GPUQ_SERVER" --cluster local --gpus 4 --restore "$@" &&
		says err "$refuses_words" && ! test -e state/data.mdb && ! test -e state/data.mdb.new
}

backup() {
	gpuq status --json | json "backup.$1"
}

shipped() {
	! ls state/batches/*seg* 2>/dev/null && test "$(backup position)" = "$(gpuq status --json | json backup.position)"
}

# is_shipped JOB: some segment has its name
is_shipped() {
	grep -lq "$1" copies/*.seg
}

now() {
	date -u +%Y-%m-%dT%H:%M:%S.%3NZ
}

# put_job NAME: a held job that is in the target
put_job() {
	put_id=$(sh_job true --hold --name "$1") && wait_for 60 is_shipped "$1" && echo "$put_id"
}

test_expect_success 'bad settings are refused' '
	for bad in "log_every: 10ms" "keep: {log: soon}"; do
		printf "backup: {to: /x, %s}\n" "$bad" >bad.yaml && test_must_fail gpuqd --config bad.yaml --check 2>err && says err "bad.yaml:1:" || return 1
	done && exits 2 gpuqd --at now && says err "needs --restore"
'

test_expect_success 'one copy, and segments after it' '
	mkdir copies && printf "backup: {to: %s, every: 1h, log_every: 1s}\n" "$PWD/copies" >backup.yaml && start_gpuqd --config backup.yaml &&
	wait_for 60 eval "ls copies/*.mdb.sha256" && run=$(sh_job "sleep 600") && job_becomes "$run" RUNNING && a=$(put_job name-a) && sleep 1.1 && t1=$(now) && sleep 1.1 &&
	b=$(put_job name-b) && gpuq cancel "$a" && c=$(put_job name-c) && test "$(ls copies/*.mdb | wc -l)" = 1 && test "$(backup log_failed)" = 0 &&
	test "$(backup log_time)" != null && gpuq doctor >out && says out "^ok +backup"
'

test_expect_success 'kill -9: nothing is missing between the segments' '
	kill_gpuqd && start_gpuqd --config backup.yaml && d=$(put_job name-d) && kill_gpuqd && ls copies/*.mdb >mdbs && test "$(wc -l <mdbs)" = 1 &&
	ls copies/*.seg | sed "s/.*-\([0-9]*-[0-9]*\).seg/\1/; s/-/ /" | sort >spans && awk "NR > 1 && \$1 + 0 != last + 1 { exit 1 } { last = \$2 + 0 }" spans
'

test_expect_success 'the newest: all of it' '
	cp -a copies kept && restore "$PWD/copies" && job_becomes "$run" RUNNING && job_is "$a" state CANCELLED && job_is "$d" name name-d &&
	e=$(sh_job true) && test "$e" -gt 1000000 && exits 0 gpuq wait "$e" && says gpuqd.log "store.restored.*position=1/[0-9]+ segments=[1-9]" && kill_gpuqd
'

test_expect_success 'an instant: what was done later is not there' '
	restore "$PWD/copies" --at "$t1" && job_is "$a" state PENDING && exits 254 gpuq status "$b" && exits 254 gpuq status "$d" && kill_gpuqd
'

test_expect_success 'a batch: exactly that one; one that is beyond it is refused' '
	last=$(awk "END { print \$2 + 0 }" spans) && restore "$PWD/copies" --at "1/$((last - 1))" && kill_gpuqd && says gpuqd.log "position=1/$((last - 1)) " &&
	refuses 78 "reaches no further than 1/$last" "$PWD/copies" --at "1/$((last + 100))" && refuses 78 "no copy before 2020" "$PWD/copies" --at 2020-01-01 &&
	refuses 78 "expected a time such as" "$PWD/copies" --at sometime
'

test_expect_success 'a copy by its name: alone, and with what came after it' '
	mdb=$(ls copies/*.mdb) && restore "$PWD/$mdb" && exits 254 gpuq status "$a" && kill_gpuqd && restore "$PWD/$mdb" --at now && job_is "$d" name name-d && kill_gpuqd
'

test_expect_success 'the target of gpuqd.yaml, and a new copy at once, which a new database needs' '
	restore target --config backup.yaml && job_is "$d" name name-d && wait_for 60 eval "ls copies/*.mdb.sha256 | wc -l | grep -qx 2" && f=$(put_job name-f) && kill_gpuqd &&
	restore target --config backup.yaml && job_is "$f" name name-f && kill_gpuqd && rm -r copies && cp -a kept copies
'

test_expect_success 'a segment that is missing, cut short, or changed is named, and what is before it can be had' '
	seg=$(ls copies/*-name 2>/dev/null || ls copies/*.seg | sort -t- -k 6 | sed -n 3p) && mv "$seg" seg && refuses 74 "batches 1/[0-9]+ to 1/[0-9]+ are missing: --at 1/[0-9]+" "$PWD/copies" &&
	before=$(sed -n "s/.*--at \(1.[0-9]*\) restores.*/\1/p" err) && head -c 200 seg >"$seg" && refuses 74 "$(basename "$seg"): cut short at byte 200: --at $before" "$PWD/copies" &&
	cp seg "$seg" && printf X | dd of="$seg" bs=1 seek=100 conv=notrunc 2>dd.err && refuses 74 "$(basename "$seg"): damaged" "$PWD/copies" &&
	restore "$PWD/copies" --at "$before" && kill_gpuqd && says gpuqd.log "position=$before" && cp seg "$seg"
'

test_expect_success 'a copy that is cut short or changed; one of a later gpuqd' '
	head -c 16384 "kept/$(basename "$mdb")" >"$mdb" && refuses 74 "cut short: restore an earlier copy" "$PWD/copies" && cp "kept/$(basename "$mdb")" "$mdb" &&
	printf X | dd of="$mdb" bs=1 seek=20000 conv=notrunc 2>dd.err && refuses 74 "SHA-256 does not match" "$PWD/$mdb" && cp "kept/$(basename "$mdb")" "$mdb" &&
	sed -i "s/gpuq backup 1/gpuq backup 2/" "$mdb.sha256" && restore "$PWD/$mdb" && kill_gpuqd && says gpuqd.log "backup.manifest.*version 2" && cp "kept/$(basename "$mdb")".sha256 copies/
'

test_expect_success 'segments of a later gpuqd, and of another database' '
	sed -i "s/gpuqseg1/gpuqseg2/" "$seg" && refuses 1 "of version 2, this gpuqd knows 1" "$PWD/copies" && cp seg "$seg"
'

test_expect_success 'copies of two clusters, jobs of another one, a file that gpuqd did not name' '
	id=$(basename "$mdb" | sed "s/^gpuq-//; s/-.*//") && cp "$mdb" "copies/gpuq-0a0a0a0a-20200101T000000Z.mdb" && refuses 78 "copies of several clusters" "$PWD/copies" && rm copies/gpuq-0a0a* &&
	mkdir -p state/local/gpuq-0a0a0a0a-1-0-0 && refuses 78 "is of another cluster than the backup, which is of $id" "$PWD/copies" && rmdir state/local/gpuq-0a0a0a0a-1-0-0 &&
	cp "$mdb" plain.mdb && refuses 78 "needs a copy that gpuqd made by itself" "$PWD/plain.mdb" --at now && restore "$PWD/plain.mdb" && kill_gpuqd
'

test_expect_success 'segments go with the copies that they follow, and by age' '
	rm -r copies && cp -a kept copies && restore "$PWD/copies" --config backup.yaml && wait_for 60 eval "ls copies/*.mdb.sha256 | wc -l | grep -qx 2" && kill_gpuqd &&
	test "$(ls copies/*.seg | wc -l)" -ge "$(ls kept/*.seg | wc -l)" && rm -f "$mdb" "$mdb.sha256" && sed "s/1h/1s/" backup.yaml >quick.yaml && start_gpuqd --config quick.yaml &&
	wait_for 60 eval "! test -e \"$seg\"" && gpuq cancel "$run" && stop_gpuqd
'

test_expect_success 'without segments there are none, and what waited is gone' '
	test -d state/batches && printf "backup: {to: %s, every: 1h, log_every: 0s}\n" "$PWD/copies" >none.yaml && start_gpuqd --config none.yaml && ! test -e state/batches &&
	test "$(backup position)" = null && stop_gpuqd
'

test_done
