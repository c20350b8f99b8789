#!/bin/sh
test_description='programs that speak PMIx in the pods of a gang of Kubernetes: servers that exchange by the network'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/mpi.sh"

gang_job=8

[ -e "$test_build/gpuq/slurm/mpi/.libs/libgpuq-pmix.so" ] || {
	skip_all='gpuq was built without openpmix (libpmix-dev)'
	test_done
}

cat >client.c <<'END_OF_C'
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pmix_proc_t me;

static void must(const char *deed, pmix_status_t rc)
{
	if (rc == PMIX_SUCCESS)
		return;
	printf("rank %u: %s: %s\n", me.rank, deed, PMIx_Error_string(rc));
	exit(1);
}

static void see(pmix_rank_t rank)
{
	pmix_proc_t proc;
	pmix_value_t *v;

	PMIX_LOAD_PROCID(&proc, me.nspace, rank);
	must("get", PMIx_Get(&proc, "card", NULL, 0, &v));
	if (v->data.uint32 != 100 + rank)
		must("value", PMIX_ERROR);
	PMIX_VALUE_RELEASE(v);
}

/* client N carry|ask [abort CODE|die]: each rank sees what the others have put: a fence carries it, or it is asked for. */
int main(int argc, char **argv)
{
	const pmix_rank_t n = (pmix_rank_t)strtol(argv[1], NULL, 10);
	const int carry = argv[2][0] == 'c';
	pmix_proc_t even[64];
	size_t n_even = 0;
	pmix_value_t v;
	pmix_info_t collect;
	bool yes = true;

	must("init", PMIx_Init(&me, NULL, 0));
	if (argc > 4 && me.rank == n - 1) {
		PMIx_Abort((int)strtol(argv[4], NULL, 10), "over", NULL, 0);
		return 0;
	}
	if (argc == 4 && me.rank == n - 1)
		_exit(5);
	if (argc > 3)
		sleep(60);
	PMIX_VALUE_LOAD(&v, &(uint32_t){ 100 + me.rank }, PMIX_UINT32);
	must("put", PMIx_Put(PMIX_GLOBAL, "card", &v));
	must("commit", PMIx_Commit());
	PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
	for (pmix_rank_t i = 0; i < n; i += 2, n_even++)
		PMIX_LOAD_PROCID(&even[n_even], me.nspace, i);
	for (int i = 0; i < 3 && me.rank % 2 == 0; i++)
		must("fence of some", PMIx_Fence(even, n_even, NULL, 0));
	must("fence", PMIx_Fence(NULL, 0, carry ? &collect : NULL, (size_t)carry));
	for (pmix_rank_t i = 0; i < n; i++)
		see(i);
	must("last fence", PMIx_Fence(NULL, 0, NULL, 0));
	printf("rank %u of %u saw all\n", me.rank, n);
	return PMIx_Finalize(NULL, 0);
}
END_OF_C
cc -o client client.c $(pkg-config --cflags --libs pmix) || {
	echo "Bail out! client.c"
	exit 1
}

hello_of openmpi || without openmpi

# knock.py WORD...: as a pod that has the key, at the gate of the srun with these words
cat >knock.py <<'END_OF_PYTHON'
import hashlib, hmac, socket, struct, sys, time

def fnv(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = (h ^ b) * 0x100000001b3 % 2**64
    return h

def proof(side, joins, serves):
    words = "gpuq-mpi2", side, joins, serves, name
    return hmac.new(b"0123456789abcdef", b"".join(w.encode() + b"\0" for w in words), hashlib.sha256).hexdigest()

def line(s):
    out = b""
    while not out.endswith(b"\n"):
        out += s.recv(1)
    return out.decode()

name = "8--0-%x" % fnv(b"".join(w.encode() + b"\0" for w in sys.argv[1:]))
for frames in b"GET / HTTP/1.0\r\n\r\n", struct.pack("!8I", 0, 0, 0, 1, 0, 2, 1, 2**30):
    for _ in range(500):
        try:
            s = socket.create_connection(("127.0.0.1", 20000 + fnv(name.encode()) % 12000), 10)
            break
        except OSError:
            time.sleep(0.1)
    ours = "%032x" % 7
    s.sendall(f"gpuq-mpi2 {ours} {name}\n".encode())
    greeting, theirs, shown = line(s).split()
    assert greeting == "gpuq-mpi2" and shown == proof("serves", ours, theirs)
    s.sendall(f"{proof('joins', ours, theirs)}\n".encode())
    n = struct.unpack("!I", s.recv(4, socket.MSG_WAITALL))[0]
    assert b"PMIX_NAMESPACE=" in s.recv(n, socket.MSG_WAITALL)
    s.sendall(frames)
    try:
        assert s.recv(1) == b""
    except ConnectionResetError:
        pass
print("hung up")
END_OF_PYTHON

saw_all() {
	seq 0 $(($1 - 1)) | sed "s/.*/rank & of $1 saw all/" >want && cat out.* | sort >got && test_cmp want got
}

test_expect_success 'start' '
	mkdir bin tmp && ln -s "$test_build/gpuq/gpuq" bin/srun && PATH=$PWD/bin:$PATH && TMPDIR=$PWD/tmp && export PATH TMPDIR && unset SLURM_MPI_TYPE
'

test_expect_success 'values that a fence carries to all pods, and fences of some ranks' '
	all_pods srun --ntasks-per-node=2 ./client 6 carry && all_end 0 && saw_all 6 && all_pods srun -n 5 ./client 5 carry && all_end 0 && saw_all 5
'

test_expect_success 'values that are asked for, also between two that do not serve' '
	all_pods srun --mpi=pmix --ntasks-per-node=2 ./client 6 ask && all_end 0 && saw_all 6 && no_folder_left
'

test_expect_success 'a rank that aborts, or ends, ends the tasks of all pods' '
	all_pods srun -n 5 ./client 5 carry abort 7 && all_end 7 && all_pods srun -n 3 ./client 3 carry die && all_end 5 && no_folder_left
'

test_expect_success 'what is no frame of a part is hung up on' '
	echo "until [ -e done ]; do sleep 0.1; done" >until_done && { in_pod 0 srun -n 3 sh until_done >out.0 2>err.0 & first=$!; } &&
	{ /usr/bin/python3 knock.py srun -n 3 sh until_done >out; cat out; >done; wait $first; } && says out "^hung up$" && no_folder_left
'

test_expect_success OPENMPI 'OpenMPI' '
	all_pods srun --ntasks-per-node=2 ./hello.openmpi && all_end 0 && seq 0 5 | sed "s/.*/rank & of 6 sum 15/" >want && cat out.* | sort >got && test_cmp want got &&
	all_pods srun -n 5 ./hello.openmpi 9 && all_end 9 && no_folder_left
'

test_done
