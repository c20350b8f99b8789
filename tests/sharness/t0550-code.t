#!/bin/sh
test_description='submit --code: a directory travels with the job, on the local cluster'
. "$(dirname "$0")/lib.sh"

XDG_CACHE_HOME=$PWD/cache && export XDG_CACHE_HOME

stored() {
	ls state/code | wc -l
}

# refused TEXT: the directory d cannot be carried, and nothing of it is
refused() {
	exits 1 gpuq submit --code d --wrap true && says err "$1" && test "$(stored)" = "$before"
}

test_expect_success 'start' '
	printf "version: 1\ncode: {keep: 1s}\n" >site.yaml && start_gpuqd && mkdir -p proj/src/deep proj/data &&
	printf "print\n" >proj/train.py && printf "#!/bin/sh\necho tool of %%s\n" >proj/src/tool && chmod +x proj/src/tool &&
	printf "*.bin\n!keep.bin\n/data/*\n" >proj/.gitignore && printf "secret\n" >proj/.gpuqignore &&
	echo 1 >proj/a.bin && echo 2 >proj/src/keep.bin && echo 3 >proj/data/set && echo 4 >proj/secret && ln -s ../train.py proj/src/link &&
	mkdir -p proj/.git && echo ref >proj/.git/HEAD
'

test_expect_success 'the job runs in a copy of the directory, where it was submitted, without what is ignored' '
	cat >job.sh <<-\END &&
	#!/bin/sh
	#SBATCH -J carried
	pwd; echo "$GPUQ_CODE_DIR"; cat link; ./tool; cd "$GPUQ_CODE_DIR"; find . | LC_ALL=C sort; echo new >made
	END
	id=$(cd proj/src && gpuq submit --parsable --code .. -o ../../out.txt ../../job.sh) && exits 0 gpuq wait "$id" &&
	code=$(sed -n 2p out.txt) && test "$(sed -n 1p out.txt)" = "$code/src" && test "$code" != "$PWD/proj" &&
	sed -n "3,\$p" out.txt >got && printf "%s\n" print "tool of %s" . ./.gitignore ./.gpuqignore ./data ./src ./src/deep ./src/keep.bin ./src/link ./src/tool ./train.py >want &&
	test_cmp want got && test ! -e proj/made && wait_for 30 test ! -e "$code"
'

test_expect_success 'the same again is not carried, also where the server was killed, and elsewhere has the same digest' '
	digest=$(gpuq status --json "$id" | json code) && test ${#digest} = 64 && kill_gpuqd && start_gpuqd && test "$(stored)" = 1 &&
	b=$(gpuq submit --parsable --code proj --wrap "ls" --hold) && job_is "$b" code "$digest" && cp -r proj again && touch again/train.py &&
	c=$(gpuq submit --parsable --code again --wrap "ls" --hold) && job_is "$c" code "$digest" && test "$(stored)" = 1 && gpuq cancel "$c"
'

test_expect_success 'it goes with the last job that names it' '
	gpuq apply -f site.yaml && sleep 4 && test "$(stored)" = 1 && gpuq release "$b" && exits 0 gpuq wait "$b" && wait_for 60 eval "test \$(stored) = 0"
'

test_expect_success 'resubmit carries it once more, and tells that it changed' '
	printf "code: proj\ncommand: [cat, train.py]\n" >job.yaml && d=$(gpuq submit --parsable job.yaml) && exits 0 gpuq wait "$d" && gpuq logs "$d" >out && says out "^print$" &&
	gpuq status -o yaml "$d" >again.yaml && says again.yaml "digest: $digest" && wait_for 60 eval "test \$(stored) = 0" &&
	echo changed >proj/train.py && e=$(gpuq resubmit --parsable "$d" 2>err) && says err "has changed" && exits 0 gpuq wait "$e" && gpuq logs "$e" >out && says out "^changed$"
'

test_expect_success 'what cannot be carried is named, and nothing is left of it' '
	wait_for 60 eval "test \$(stored) = 0" && before=0 && mkdir d && mkfifo d/pipe && refused "d/pipe is a pipe" && rm d/pipe &&
	/usr/bin/python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\"d/sock\")" && refused "d/sock is a socket" && rm d/sock &&
	ln -s /etc d/etc && refused "d/etc is a link that leaves the directory, to /etc" && rm d/etc && ln -s a/../../x d/up && refused "d/up is a link that leaves" && rm d/up &&
	truncate -s 10G d/big && refused "more than 1024 MiB, with big" && echo big >d/.gpuqignore && exits 0 gpuq submit --parsable --code d --wrap true &&
	exits 1 gpuq submit --code nowhere --wrap true && says err "nowhere: No such file" && exits 1 gpuq submit --code job.sh --wrap true && says err "Not a directory" &&
	printf "code: {dir: d, subdir: ../..}\ncommand: [ls]\n" >bad.yaml && exits 1 gpuq submit bad.yaml && says err "bad.yaml:1:.*without .\.\.." &&
	{ test "$(id -u)" = 0 || { echo x >d/closed && chmod 0 d/closed && refused "d/closed: cannot open"; }; }
'

[ "$(id -u)" != 0 ] || { mknod probe c 1 3 2>/dev/null && rm probe && test_set_prereq DEVICES; }
test_expect_success DEVICES 'a device is named' '
	mkdir dev && mknod dev/null c 1 3 && exits 1 gpuq submit --code dev --wrap true && says err "dev/null is a device"
'

test_expect_success 'a digest that is not there, or bytes that have another, are refused' '
	printf "code: {dir: /nowhere, digest: \"%064d\", bytes: 7}\ncommand: [ls]\n" 7 >bad.yaml && exits 1 gpuq submit bad.yaml && says err "/nowhere: No such file" &&
	rpc() { /usr/bin/python3 "$test_source/tests/sharness/rpc.py" "$GPUQ_SERVER" code.put "{\"digest\": \"$(printf "%064d" 7)\", \"bytes\": 3$1}" >out 2>err; } &&
	rpc "" && test "$(cat out)" = "{\"done\": false, \"have\": 0}" && ! rpc ", \"data\": \"abc\"" && says err "data" && test -z "$(ls state/code | grep part)"
'

test_done
