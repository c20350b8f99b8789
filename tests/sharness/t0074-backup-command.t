#!/bin/sh
test_description='copies and segments through a command: put, list, get, delete; and restored through it'
. "$(dirname "$0")/lib.sh"

cat >keeper <<'EOF'
#!/bin/sh
# takes and gives copies in the folder of its first argument; fails while there is a file `broken`
set -e
dir=$1
echo "$GPUQ_BACKUP_ACTION $GPUQ_BACKUP_NAME" >>"$dir/../calls"
if test -e "$dir/../broken"; then
	echo "no space on the tape" >&2
	exit 3
fi
if test -e "$dir/../hangs"; then sleep 600; fi
case $GPUQ_BACKUP_ACTION in
put)
	cat >"$dir/.new.$$"
	echo "$GPUQ_BACKUP_SHA256  $dir/.new.$$" | sha256sum -c --quiet
	mv "$dir/.new.$$" "$dir/$GPUQ_BACKUP_NAME"
	;;
get) cat "$dir/$GPUQ_BACKUP_NAME" ;;
list) cd "$dir" && for f in *; do if test -e "$f"; then stat -c "%n %s" "$f"; fi; done ;;
delete) rm -f "$dir/$GPUQ_BACKUP_NAME" ;;
esac
EOF
chmod +x keeper

backup_is() {
	test "$(gpuq status --json | json "backup.$1")" = "$2"
}

asks() {
	asks_command=$1
	shift
	gpuq $asks_command >asks.out 2>&1
	grep -Eq -e "$*" asks.out
}

is_shipped() {
	grep -lq "$1" kept/*.seg
}

test_expect_success 'to and command at once are refused' '
	printf "backup: {to: /x, command: [/bin/true]}\n" >bad.yaml && test_must_fail gpuqd --config bad.yaml --check 2>err && says err "bad.yaml:1:.*to or command, not both"
'

test_expect_success 'a copy, a segment, an audit through it' '
	mkdir kept && printf "backup: {command: [%s, %s], every: 1h, log_every: 1s}\n" "\"$PWD/keeper\"" "\"$PWD/kept\"" >backup.yaml &&
	start_gpuqd --config backup.yaml && wait_for 60 backup_is copies 1 && a=$(sh_job true --hold --name name-a) && wait_for 60 is_shipped name-a &&
	exits 0 gpuq backup verify && says out "whole: " && gpuq backup list >out && says out "gpuq-.*Z.mdb .*iB.*whole"
'

test_expect_success 'where it fails, its words are told, and it is tried again' '
	touch broken && b=$(sh_job true --hold --name name-b) && wait_for 60 asks doctor "^warning +backup .*do not reach.*exit code 3: no space on the tape" && rm broken &&
	wait_for 60 is_shipped name-b && wait_for 60 backup_is log_failed 0
'

test_expect_success 'a command that hangs: SIGTERM ends the daemon and the command' '
	touch hangs && c=$(sh_job true --hold --name name-c) && sleep 1 && exits 0 stop_gpuqd && rm hangs && ! grep -q "backup.abandoned" gpuqd.log
'

test_expect_success 'restored through it; what was left of the last second is put at the next start' '
	start_gpuqd --config backup.yaml && wait_for 60 is_shipped name-c && kill_gpuqd && rm -r state/data.mdb state/lock.mdb state/mark && start_gpuqd --config backup.yaml --restore target &&
	job_is "$c" name name-c && job_is "$a" name name-a && stop_gpuqd && says calls "^get gpuq-.*seg"
'

test_expect_success 'old copies are deleted through it' '
	sed "s/1h/1s, keep: {hourly: 1, daily: 0}/" backup.yaml >quick.yaml && start_gpuqd --config quick.yaml && wait_for 60 grep -q "^delete gpuq-.*mdb.sha256" calls && stop_gpuqd
'

test_done
