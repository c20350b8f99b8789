#!/bin/sh
test_description='MPI programs in the pods of a gang of Kubernetes: sruns that meet by the network'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/mpi.sh"

gang_job=7

cat >rank.py <<'END_OF_RANK'
import os, socket, sys

host, port = os.environ["PMI_PORT"].split(":")
f = socket.create_connection((host, int(port))).makefile("rw", newline="\n")

def ask(line):
    f.write(line + "\n")
    f.flush()
    return f.readline().rstrip("\n")

rank, size = os.environ["PMI_RANK"], int(os.environ["PMI_SIZE"])
assert ask("cmd=initack pmiid=" + os.environ["PMI_ID"]) == "cmd=initack rc=0"
assert [f.readline().strip() for _ in range(3)] == [f"cmd=set size={size}", f"cmd=set rank={rank}", "cmd=set debug=0"]
assert "rc=0" in ask("cmd=init pmi_version=1 pmi_subversion=1")
name = ask("cmd=get_my_kvsname").split("kvsname=")[1]
assert "rc=0" in ask(f"cmd=put kvsname={name} key=card-{rank} value=rank {rank} is here")
assert ask("cmd=barrier_in") == "cmd=barrier_out rc=0"
for i in range(size):
    assert ask(f"cmd=get kvsname={name} key=card-{i}").endswith(f"value=rank {i} is here")
mapping = ask(f"cmd=get kvsname={name} key=PMI_process_mapping").split("value=")[1]
if len(sys.argv) > 1:
    # The others wait for it: one that has ended is not ended by an abort.
    f.write(f"cmd=abort exitcode={sys.argv[1]}\n" if rank == "0" else "cmd=barrier_in\n")
    f.flush()
    f.readline()
assert ask("cmd=finalize") == "cmd=finalize_ack rc=0"
print(f"rank {rank} of {size} {mapping}")
END_OF_RANK

test_expect_success 'start' '
	mkdir bin && ln -s "$test_build/gpuq/gpuq" bin/srun && PATH=$PWD/bin:$PATH && export PATH && unset SLURM_MPI_TYPE
'

test_expect_success 'the tasks of three pods are one world, whose nodes are the pods' '
	all_pods srun --ntasks-per-node=2 /usr/bin/python3 rank.py && all_end 0 &&
	seq 0 5 | sed "s/.*/rank & of 6 (vector,(0,3,2))/" >want && cat out.0 out.1 out.2 | sort >got && test_cmp want got
'

test_expect_success 'the next step meets anew, and one on some of the pods' '
	all_pods srun -n 3 /usr/bin/python3 rank.py && cat err.* && seq 0 2 | sed "s/.*/rank & of 3 (vector,(0,3,1))/" >want && cat out.* | sort >got && test_cmp want got
'

test_expect_success 'a rank that aborts ends the tasks of all pods' '
	all_pods srun -n 3 /usr/bin/python3 rank.py 9 && ! grep " 0$" codes && says codes "^0 9$"
'

test_expect_success 'without the key none joins, and none is let in' '
	{ in_pod 0 srun --mpi=pmi2 -n 3 /usr/bin/python3 rank.py >out.0 2>err.0 & first=$!; } && { in_pod 1 srun --mpi=pmi2 -n 3 /usr/bin/python3 rank.py >out.1 2>err.1 & second=$!; } &&
	{ in_pod 2 GPUQ_GANG_KEY=0123456789abcdee srun --mpi=pmi2 -n 3 /usr/bin/python3 rank.py >out.2 2>err.2 & third=$!; } && wait_for 60 grep -q "waiting for the first pod" err.2 &&
	kill "$third" && { wait "$third" || :; } && test ! -s out.0 && test ! -s out.1 && kill "$first" "$second" && { wait "$first" "$second" || :; }
'

test_done
