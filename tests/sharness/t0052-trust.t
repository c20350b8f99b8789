#!/bin/sh
test_description='under root: what a job may say, write and be, and what gpuqd reads for others'
. "$(dirname "$0")/lib.sh"

# rpc USER METHOD JSON: a call without a client that looks at it first
rpc() {
	rpc_user=$1
	shift
	as "$rpc_user" /usr/bin/python3 "$TMPDIR/bin/rpc.py" "$gpuqd_socket" "$@"
}

# forged PATH: a line of the protocol that shepherds once spoke, which names PATH as the output
forged() {
	printf 'T%s 0 0 %s' "$(stat -c '%d %i' "$1")" "$1"
}

# submit_refused WORD...: submit as nobody, from the directory $submit_in; id has what was printed
submit_in=open
submit_refused() {
	(cd "$submit_in" && as nobody env HOME=/ gpuq submit --parsable "$@") >id 2>err || :
}

# is_kept SUBMITTED: the job that was submitted as nobody, if it was, does not show the secret
is_kept() {
	[ -n "$1" ] || return 0
	wait_for 60 eval "gpuq wait $1; [ \$? -lt 200 ]" || return 1
	as nobody env HOME=/ gpuq logs "$1" >shown 2>&1
	cat shown
	! grep -q topsecret shown
}

# Print the number of the session keyring; with arguments join a new one first and run them in it.
cat >keyring.py <<-\END
import ctypes, os, platform, sys
call = {"x86_64": 250, "aarch64": 219}.get(platform.machine())
libc = ctypes.CDLL(None)
if call and len(sys.argv) > 1:
    libc.syscall(call, 1, None)
print(libc.syscall(call, 0, -3, 0) if call else -1, flush=True)
if len(sys.argv) > 1:
    os.execv(sys.argv[1], sys.argv[1:])
END

test_expect_success ROOT 'a daemon with what no job must have, a secret of root' '
	mkdir -m 755 privileged && cat >privileged/gpuqd <<-END &&
	#!/bin/sh
	exec setpriv --groups 0,4,6,27 --inh-caps +net_raw /usr/bin/python3 "$PWD/keyring.py" "$test_build/gpuqd/gpuqd" "\$@"
	END
	chmod +x privileged/gpuqd && PATH=$PWD/privileged:$PATH && chmod a+r keyring.py &&
	start_gpuqd && open_to_all && mkdir -m 777 open && echo topsecret >secret && chmod 600 secret &&
	mkdir -p "$TMPDIR/bin" && chmod 755 "$TMPDIR/bin" &&
	cp "$test_source/tests/sharness/rpc.py" "$test_source/tests/unit/cli/fake.py" "$TMPDIR/bin" && chmod a+r "$TMPDIR"/bin/*.py
'

# ---- a job cannot name a file of another user as its output ----


# refuse FIELD REGEX: as a job file, the field with a forged line in it is refused with its place
refuse() {
	refuse_field=$1 refuse_text=$2
	test_expect_success ROOT "a job file: $1" '
		line=$(forged "$PWD/secret") && printf "$refuse_text" "no\\n$line\\nx" >open/job.yaml && cat open/job.yaml &&
		submit_refused job.yaml && is_kept "$(cat id)" && test ! -s id &&
		says err "job.yaml:[0-9]+:[0-9]+: $refuse_field: expected no control characters: byte [0-9]+ is 0x0a"
	'
}
refuse command 'command: ["%s"]\n'
refuse chdir 'command: ["true"]\nchdir: "%s"\n'
refuse output 'command: ["true"]\noutput: "%s"\n'
refuse error 'command: ["true"]\noutput: o\nerror: "%s"\n'
refuse input 'command: ["true"]\ninput: "%s"\n'
refuse workdir 'command: ["true"]\nworkdir: "/%s"\n'

test_expect_success ROOT 'options' '
	line=$(printf "x\n%s\nx" "$(forged "$PWD/secret")") && printf "#!/bin/sh\ntrue\n" >open/job.sh &&
	for option in chdir output error input; do
		submit_refused "--$option=$line" job.sh && is_kept "$(cat id)" && test ! -s id && says err "$option: expected no control characters" || return 1
	done
'

test_expect_success ROOT 'a line of a script' '
	printf "#!/bin/sh\n#SBATCH --output=\"a\tb\"\ntrue\n" >open/job.sh &&
	submit_refused job.sh && test ! -s id &&
	says err "job.sh:2:9: --output: expected no control characters: byte 2 is 0x09"
'

test_expect_success ROOT 'a manifest' '
	line=$(forged "$PWD/secret") && cat >open/pod.yaml <<-END &&
	apiVersion: v1
	kind: Pod
	metadata: {name: evil}
	spec:
	  containers:
	  - name: main
	    image: x
	    command: ["no\n$line\nx"]
	END
	submit_refused pod.yaml && is_kept "$(cat id)" && test ! -s id &&
	says err "pod.yaml:[0-9]+:[0-9]+: .*command: expected no control characters"
'

test_expect_success ROOT 'the directory of submission' '
	line=$(printf "x\nT0 0 0 0 .") && mkdir -p -m 777 "open/$line" &&
	echo "command: [\"true\"]" >open/true.yaml && submit_in="open/$line" && submit_refused "$PWD/open/true.yaml" && is_kept "$(cat id)" &&
	test ! -s id && says err "context: cwd: expected no control characters"
'

test_expect_success ROOT 'a client that does not look' '
	for field in "\"chdir\": \"/x\\\\nTy\"" "\"output\": \"x\\\\nTy\"" "\"error\": \"x\\\\nTy\"" "\"input\": \"x\\\\nTy\"" \
		"\"context\": {\"cwd\": \"/x\\\\nTy\"}"; do
		text=$(printf "{\"specs\": [{\"command\": [\"true\"], $field}]}") &&
		test_must_fail rpc nobody job.submit "$text" 2>err && says err "expected no control characters" || return 1
	done &&
	test_must_fail rpc nobody job.submit "{\"specs\": [{\"command\": [\"x\\nTy\"]}]}" 2>err && says err "expected no control characters"
'

test_expect_success ROOT 'an update' '
	held=$(cd open && echo "command: [\"true\"]" | as nobody env HOME=/ gpuq submit --parsable --hold -) &&
	for set in "\"chdir\": \"/x\\\\nTy\"" "\"output\": \"x\\\\nTy\"" "\"command\": [\"x\\\\nTy\"]"; do
		text=$(printf "{\"ids\": [\"$held\"], \"set\": {$set}}") &&
		rpc nobody job.update "$text" >out 2>&1; says out "expected no control characters" || return 1
	done && gpuq status "$held" --json >out && test_must_fail grep -q Ty out && gpuq cancel "$held"
'

# ---- what a shepherd of an earlier version wrote down grants nothing ----

test_expect_success ROOT 'the output of a job in a file of its own is shown' '
	id=$(cd open && printf "#!/bin/sh\necho from the file\n" | as nobody env HOME=/ gpuq submit --parsable -o own -) &&
	exits 0 gpuq wait "$id" && as nobody env HOME=/ gpuq logs "$id" >out && echo "from the file" >want && test_cmp want out &&
	gpuq logs "$id" >out && test_cmp want out
'

test_expect_success ROOT 'a record that names a file of root shows nothing of it' '
	to=$(echo state/logs/*-"$id"-0-0.*.to) && cp "$to" to.kept && forged "$PWD/secret" | tail -c +2 >"$to" && cat "$to" &&
	test_might_fail as nobody env HOME=/ gpuq logs "$id" >out 2>&1 && test_must_fail grep topsecret out &&
	sed "s/ 0 0 / 65534 0 /" "$to" >to.new && cp to.new "$to" && test_might_fail as nobody env HOME=/ gpuq logs "$id" >out 2>&1 &&
	test_must_fail grep topsecret out && cp to.kept "$to" && as nobody env HOME=/ gpuq logs "$id" >out && test_cmp want out
'

test_expect_success ROOT 'nor does the same of a job that runs' '
	id2=$(cd open && printf "#!/bin/sh\n#GPUQ --cpus=0\necho begun; sleep 300\n" | as nobody env HOME=/ gpuq submit --parsable -o own2 -) &&
	wait_for 60 grep -q begun open/own2 && wait_for 60 eval "test -e state/logs/*-$id2-0-0.*.to" && to2=$(echo state/logs/*-"$id2"-0-0.*.to) && cp "$to2" to2.kept &&
	forged "$PWD/secret" | tail -c +2 >"$to2" && test_might_fail as nobody env HOME=/ gpuq logs "$id2" >out 2>&1 &&
	test_must_fail grep topsecret out && cp to2.kept "$to2" && as nobody env HOME=/ gpuq logs "$id2" >out && says out "^begun$"
'

# put KIND: something else at the path that the job opened
put() {
	case $1 in
	link) ln -s "$PWD/secret" open/own ;;
	name) ln secret open/own ;;
	pipe) mkfifo -m 666 open/own ;;
	device) mknod -m 666 open/own c 1 5 || echo "no device can be made here" ;;
	file) cp open/moved open/own && chmod 666 open/own ;;
	esac
}

test_expect_success ROOT 'a link, a name, a pipe, a device, a file in its place: nothing, and the daemon goes on' '
	mv open/own open/moved &&
	for kind in link name pipe device file; do
		put $kind && { as nobody env HOME=/ timeout 60 gpuq logs "$id" >out 2>&1; test $? != 124; } &&
		test_must_fail grep -e topsecret -e "from the file" out && gpuq version >version || return 1
		rm -f open/own
	done && mv open/moved open/own && as nobody env HOME=/ gpuq logs "$id" >out && test_cmp want out
'

test_expect_success ROOT 'a file that its owner may not read any more is not read for it' '
	mkdir -m 777 open/dir && id3=$(cd open/dir && printf "#!/bin/sh\necho topsecret\n" | as nobody env HOME=/ gpuq submit --parsable -o own -) &&
	exits 0 gpuq wait "$id3" && chown root open/dir/own && chmod 600 open/dir/own &&
	test_might_fail as nobody env HOME=/ gpuq logs "$id3" >out 2>&1 && test_must_fail grep topsecret out &&
	test_might_fail gpuq logs "$id3" >out 2>&1 && test_must_fail grep topsecret out
'

# ---- identities ----

# groups_of PID: its groups, and all four of its user ids
groups_of() {
	sed -n "s/^\(Uid\|Groups\):[[:space:]]*//p" "/proc/$1/status" | tr -s '\t ' '  ' | sed 's/ $//'
}

# with WORDS: the processes of this test that were called with them
with() {
	for with_pid in $(tagged); do
		if tr '\0' ' ' <"/proc/$with_pid/cmdline" | grep -q -e "$1"; then echo "$with_pid"; fi
	done
}

test_expect_success ROOT 'the process that reads a file of its own is its owner, without a group of ours' '
	{ as nobody env HOME=/ gpuq logs -f "$id2" >followed & } && wait_for 60 grep -q begun followed &&
	pid=$(with --read-output) && test -n "$pid" && groups_of "$pid" >got && cat got && n=$(id -u nobody) &&
	id -G nobody >groups.want && { sed -n 1p got | grep -qx "$n $n $n $n"; } && sed -n 2p got >groups.got &&
	test_cmp groups.want groups.got
'

test_expect_success ROOT 'it ends with its reader' '
	kill $(with "gpuq logs -f") && wait_for 60 eval "test -z \"\$(with --read-output)\"" && gpuq cancel "$id2"
'

test_expect_success ROOT 'a job has the groups of its user, none of the daemon' '
	id -G nobody >want && id=$(cd open && printf "#!/bin/sh\nid -G; sleep 300\n" | as nobody env HOME=/ gpuq submit --parsable -) &&
	wait_for 60 eval "gpuq logs $id | grep -q ." && gpuq logs "$id" >out && test_cmp want out &&
	grep "^Groups:" "/proc/$gpuqd_pid/status" >ours && says ours "4 6 27"
'

test_expect_success ROOT 'nor has it a capability or the keyring of the daemon' '
	grep "^CapInh:" "/proc/$gpuqd_pid/status" >ours && says ours "2000$" && as nobody env HOME=/ gpuq exec "$id" -- cat /proc/self/status >status &&
	says status "^CapInh:.0*$" && says status "^CapPrm:.0*$" && says status "^CapEff:.0*$" && says status "^CapAmb:.0*$" &&
	keyring=$(grep -xE "[-0-9]+" gpuqd.log | head -n 1) && test -n "$keyring" &&
	as nobody env HOME=/ gpuq exec "$id" -- /usr/bin/python3 "$PWD/keyring.py" >out && cat out &&
	{ test "$keyring" -lt 0 || test_must_fail grep -qx -e "$keyring" out; }
'

test_expect_success ROOT 'nor does a program beside it' '
	as nobody env HOME=/ gpuq exec "$id" -- id -G >out && test_cmp want out &&
	as nobody env HOME=/ gpuq exec "$id" -- sh -c "cat /proc/self/status" >status && says status "^Uid:.$(id -u nobody).$(id -u nobody).$(id -u nobody).$(id -u nobody)" &&
	gpuq cancel "$id"
'

test_expect_success ROOT 'a state directory that others can write is refused' '
	for mode in "0755 nobody" "0777 root" "0775 root"; do
		rm -rf theirs && mkdir theirs && chown "${mode#* }:$(id -g nobody)" theirs && chmod "${mode% *}" theirs &&
		exits 78 timeout 60 gpuqd --state "$PWD/theirs" --listen "unix:$TMPDIR/s2" --cluster local --gpus 1 &&
		says err "state directory .*theirs .*its files could be replaced; expected" || return 1
	done
'

test_expect_success ROOT 'without HOME the state is in the home directory of the user, not in /tmp' '
	mkdir -p -m 755 "$TMPDIR/bin" && cp "$test_build/gpuqd/gpuqd" "$TMPDIR/bin/gpuqd" && chmod 755 "$TMPDIR/bin/gpuqd" &&
	as nobody env --unset=HOME "$TMPDIR/bin/gpuqd" --print-config >config && cat config && test_must_fail grep "state:.*/tmp/" config
'

cat >stranger.py <<-\END
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
fcntl.fcntl(fd, 1031, 1 << 20)  # F_SETPIPE_SZ: there is always something to be read
open("writing", "w").close()
while True:
    os.write(fd, bytes(1 << 20))
END

start_strangers() {
	strangers=
	for n in 1 2 3 4; do
		/usr/bin/python3 stranger.py "/proc/$(cat pid)/fd/1" &
		strangers="$strangers $!"
	done
}

ends_beside_strangers() {
	wait_for 60 job_is "$id" state COMPLETED
	ended=$?
	kill $strangers 2>/dev/null
	test $ended = 0
}

test_expect_success 'output that strangers go on writing does not hold up the end' '
	if [ -n "$gpuqd_pid" ]; then stop_gpuqd; fi &&
	GPUQ_FAILPOINT="shepherd.output:*=delay:20" && export GPUQ_FAILPOINT && start_gpuqd && unset GPUQ_FAILPOINT &&
	id=$(sh_job "echo \$\$ >pid.new; mv pid.new pid; until [ -e go ]; do sleep 0.05; done") && wait_for 60 test -s pid &&
	start_strangers && wait_for 60 test -e writing && touch go && ends_beside_strangers
'

test_expect_success 'end' '
	stop_gpuqd
'

test_done
