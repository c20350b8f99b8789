#!/bin/sh
test_description='sruns of a gang know one another by a key that they do not send'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/mpi.sh"

gang_job=8

# gate.py DEED WORD...: as one that is in the network of the pods, with srun of these words
cat >gate.py <<'END_OF_PYTHON'
import hashlib, hmac, os, socket, struct, sys, time

KEY = "0123456789abcdef"

def fnv(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = (h ^ b) * 0x100000001b3 % 2**64
    return h

name = "8--0-%x" % fnv(b"".join(w.encode() + b"\0" for w in sys.argv[2:]))
port = 20000 + fnv(name.encode()) % 12000
one = "%032x" % 1

def proof(side, joins, serves, key=KEY):
    words = "gpuq-mpi2", side, joins, serves, name
    return hmac.new(key.encode(), b"".join(w.encode() + b"\0" for w in words), hashlib.sha256).hexdigest()

def line(s):
    out = b""
    while not out.endswith(b"\n"):
        more = s.recv(1)
        if not more:
            break
        out += more
    return out.decode()

def knock(said):
    for _ in range(500):
        try:
            s = socket.create_connection(("127.0.0.1", port), 10)
            break
        except OSError:
            time.sleep(0.1)
    s.sendall(said.encode())
    return s

def hung_up(s):
    try:
        return s.recv(1) == b""
    except ConnectionResetError:
        return True

def wrong():
    for said in (f"gpuq-mpi {KEY} {name}\n", f"gpuq-mpi2 {one} other\n", f"gpuq-mpi2 short {name}\n", "GET / HTTP/1.0\r\n\r\n", "x" * 2000):
        assert hung_up(knock(said)), said
    for make in (lambda n: proof("serves", one, n), lambda n: proof("joins", one, n, "guess"), lambda n: proof("joins", one, one), lambda n: ""):
        s = knock(f"gpuq-mpi2 {one} {name}\n")
        word, theirs, shown = line(s).split()
        assert word == "gpuq-mpi2" and shown == proof("serves", one, theirs)
        s.sendall((make(theirs) + "\n").encode())
        assert hung_up(s)
    s = knock(f"gpuq-mpi2 {one} {name}\n")
    theirs = line(s).split()[1]
    s.sendall((proof("joins", one, theirs) + "\n").encode())
    assert struct.unpack("!I", s.recv(4, socket.MSG_WAITALL))[0] > 4

def listen():
    """Between a srun and the first pod, or in place of that: what is heard, is it enough to join?"""
    gate = socket.create_server(("127.0.0.1", port))
    heard = []
    for reply in ("", f"gpuq-mpi2 {one} {one}{one}\n", f"gpuq-mpi2 {one} {proof('serves', one, one, 'guess')}\n"):
        s, _ = gate.accept()
        heard.append(line(s))
        s.sendall(reply.encode())
        if not reply:
            s.close()
        else:
            assert hung_up(s)
    assert all(h.startswith("gpuq-mpi2 ") and KEY not in h for h in heard) and len(set(heard)) == 3
    open("heard", "w")

dict(wrong=wrong, listen=listen)[sys.argv[1]]()
print("as it should")
END_OF_PYTHON

test_expect_success 'start' '
	mkdir bin "$TMPDIR/files" && ln -s "$test_build/gpuq/gpuq" bin/srun && PATH=$PWD/bin:$PATH && TMPDIR=$TMPDIR/files && export PATH TMPDIR && unset SLURM_MPI_TYPE
'

# beside_first, in_place_of_first: gate.py, and the srun of that pod or of another, which is ended then
beside_first() {
	echo "until [ -e done ]; do sleep 0.1; done" >until_done
	in_pod 0 srun -n 3 sh until_done >out.0 2>err.0 &
	srun=$!
	/usr/bin/python3 gate.py wrong srun -n 3 sh until_done >out 2>&1
	echo >"done"
	wait $srun
	cat out err.0
}

in_place_of_first() {
	in_pod 1 srun --mpi=pmi2 -n 3 true >out.1 2>err.1 &
	srun=$!
	/usr/bin/python3 gate.py listen srun --mpi=pmi2 -n 3 true >out 2>&1
	kill $srun
	wait $srun
	cat out err.1
}

test_expect_success 'an srun that does not show the key is hung up on, also with what another has shown; an older srun is told of' '
	beside_first && says out "^as it should$" && says err.0 "gpuq of another pod is older"
'

test_expect_success 'a listener does not hear the key, and one that does not have it learns no proof' '
	in_place_of_first && says out "^as it should$"
'

test_expect_success 'nothing is left' no_folder_left

test_done
