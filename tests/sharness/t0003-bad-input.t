#!/bin/sh
test_description='wrong files and hostile peers: a clear error, nothing stored, the daemon lives'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' '
	start_gpuqd && first=$(echo "command: [\"true\"]" | submit -)
'

# refuse WHAT REGEX: the file ./job is refused with such a line
refuse() {
	refuse_what=$1 refuse_line=$2
	test_expect_success "refused: $refuse_what" '
		exits 1 gpuq submit job && says err "$refuse_line" && test_must_be_empty out
	'
}

printf 'command: ["true"]\ngpsu: 4\n' >job
refuse 'an unknown key, with the nearest known one' 'job:2:1: .*gpsu.*gpus'

printf 'command: ["true"]\ngpus: many\n' >job
refuse 'a word for a number' 'job:2:7: .*gpus'

printf 'command: ["true"]\ngpus: -1\n' >job
refuse 'a negative number' 'job:2:7: .*gpus'

printf 'command: ["true"]\ngpus: 99999999999999999999\n' >job
refuse 'a number that no machine has' 'job:2:7: .*gpus'

printf 'command: ["true"]\ntime: soon\n' >job
refuse 'a duration that is none' 'job:2:7: .*time'

printf 'command: ["true"]\nmemory: 5 apples\n' >job
refuse 'a size that is none' 'job:2:9: .*memory'

printf 'command: ["true"]\nname: n%0300d\n' 0 >job
refuse 'a name that is too long' 'job:2:7: .*name'

printf 'command: ["true"]\npods: {min: 4, max: 2}\n' >job
refuse 'a range that is empty' 'job:2:[0-9]+: .*pods'

printf 'command: ["true"]\nname: a\nname: b\n' >job
refuse 'a key twice' 'job:3:1: .*name'

printf 'command: ["true"\ngpus: 4\n' >job
refuse 'YAML that does not parse' 'job:[0-9]+:[0-9]+: '

printf 'a: &a [1, 2]\nb: *a\n' >job
refuse 'aliases' 'job:[0-9]+:[0-9]+: '

printf '{"command": ["true"], "gpus": 1\n' >job
refuse 'JSON that does not parse' 'job:[0-9]+:[0-9]+: '

printf 'gpus: 1\n' >job
refuse 'no command' 'job.*command'

: >job
refuse 'an empty file' 'job.*'

head -c 300 /dev/urandom >job
refuse 'noise' 'job.*'

head -c 3000000 /dev/zero | tr '\0' '#' >job
refuse 'a file beyond the limit' 'job.*'

# manifest: the head of one, whose container waits for more lines
manifest() {
	printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: main\n    image: a\n    command: ["true"]\n'
}

{ manifest; printf '    env:\n    - {name: A, value: "'; head -c 4194304 /dev/zero | tr '\0' x; printf '"}\n'; } >job
refuse 'a manifest of 4 MiB' 'job: larger than 1024 KiB'

{ manifest; printf '    env:\n    - &v {name: A, value: b}\n'; seq 1000 | sed 's/.*/    - *v/'; } >job
refuse 'a manifest with 1,000 aliases' 'job:[0-9]+:[0-9]+: .*more than 999 aliases'

printf '#!/bin/sh\n#GPUQ --gpus=2\n#GPUQ --no-such-option=1\ntrue\n' >job
refuse 'an unknown directive, with its line' 'job:3:.*no-such-option'

printf '#!/bin/sh\n#SBATCH --time=whenever\ntrue\n' >job
refuse 'a directive with a bad value' 'job:2:.*time'

printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n' >job
refuse 'a manifest of another kind' 'job:[0-9]+:[0-9]+: .*ConfigMap'

printf 'command: ["true"]\n---\ncommand: ["true"]\ngpus: x\n' >job
refuse 'all documents when one is wrong' 'job:4:7: .*gpus'

printf 'command: ["true"]\nqueue: defualt\n' >job
refuse 'an unknown queue, with the nearest' 'defualt.*default'

printf 'command: ["true"]\nqos: nromal\n' >job
refuse 'an unknown qos, with the nearest' 'nromal.*normal'

test_expect_success 'a file that is not there' '
	exits 1 gpuq submit no-such-file && says err "no-such-file"
'

test_expect_success 'an unknown directive can be passed over' '
	printf "#!/bin/sh\n#SBATCH --no-such-option=1\ntrue\n" >job &&
	exits 0 gpuq submit --ignore-unknown --wait job
'

test_expect_success 'nothing of it was stored' '
	next=$(echo "command: [\"true\"]" | submit -) && test "$next" = $((first + 2))
'

cat >hostile.py <<'END'
"""Bytes that no client sends. Each connection must be ended, or starved, without a reply that agrees."""
import os, socket, struct, sys

path = sys.argv[1]

def talk(name, data, then_close=True):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(path)
    got = b""
    try:
        s.sendall(data)
        if then_close:
            s.shutdown(socket.SHUT_WR)
        while True:
            piece = s.recv(65536)
            if not piece:
                break
            got += piece
            assert len(got) < 1 << 20, name + ": an endless answer"
    except (ConnectionResetError, BrokenPipeError):
        pass
    except socket.timeout:
        sys.exit(name + ": the connection stays open")
    s.close()

talk("nothing", b"")
talk("noise", os.urandom(4096))
talk("text", b"GET / HTTP/1.1\r\n\r\n")
talk("an array of 4 G", b"\xdd\xff\xff\xff\xff" * 64)
talk("a map of 4 G", b"\x94\x00\x01\xa5hello\xdf\xff\xff\xff\xff")
talk("a string of 4 G", b"\x94\x00\x01\xdb\xff\xff\xff\xff" + b"x" * 100000)
talk("nested without end", b"\x91" * 200000)
talk("nested large arrays", (b"\xdc\xff\xff") * 20000)
talk("nils", b"\x94\x00\x01\xa5hello\xdc\xff\xff" + b"\xc0" * 65535)
talk("half a request", b"\x94\x00\x01\xa5hel")
talk("a reserved byte", b"\xc1" * 10)
talk("an unknown type", b"\x94\x07\x01\xa5hello\x80")
talk("a method before hello", b"\x94\x00\x01\xa8job.list\x91\x80")
talk("a long method", b"\x94\x00\x01\xda\x20\x00" + b"m" * 8192 + b"\x91\x80")
talk("a large request before hello", b"\x94\x00\x01\xa5hello\x91\x81\xa1x\xc6" + struct.pack(">I", 1 << 20) + b"y" * (1 << 20))
END
test_expect_success 'hostile peers are shown out' '
	/usr/bin/python3 hostile.py "$gpuqd_socket"
'

test_expect_success 'many silent connections do not shut others out' '
	cat >silent.py <<-\END &&
	import socket, subprocess, sys
	held = []
	for _ in range(300):
	    s = socket.socket(socket.AF_UNIX)
	    try:
	        s.connect(sys.argv[1])
	    except OSError:
	        break
	    held.append(s)
	assert held
	for s in held[64:]:
	    s.close()
	sys.exit(0)
	END
	/usr/bin/python3 silent.py "$gpuqd_socket" && gpuq version
'

test_expect_success 'the daemon did not grow' '
	test "$(awk "/^VmRSS/ { print \$2 }" /proc/$gpuqd_pid/status)" -lt 200000
'

test_expect_success 'and it still works' '
	echo "command: [\"true\"]" >job && exits 0 gpuq submit --wait job &&
	stop_gpuqd
'

test_expect_success 'a wrong configuration is refused with its place' '
	printf "no_such_key: 1\n" >conf.yaml &&
	test_must_fail gpuqd --config conf.yaml --state state --check 2>err && says err "conf.yaml:1:1: .*no_such_key" &&
	test_must_fail gpuqd --config no-such-file --check 2>err && says err "no-such-file" &&
	test_must_fail gpuqd --no-such-option 2>err && says err "no-such-option"
'

test_done
