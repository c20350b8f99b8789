#!/bin/sh
test_description='MPI programs as tasks of srun: MPICH (PMI-1) and OpenMPI (PMIx)'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/mpi.sh"

# A rank as libraries speak PMI-1: by an inherited connection, or by the network.
cat >rank.py <<'END'
import os, socket, sys

env = os.environ
if "PMI_FD" in env:
    s = socket.socket(fileno=int(env["PMI_FD"]))
else:
    host, port = env["PMI_PORT"].split(":")
    s = socket.create_connection((host, int(port)))
f = s.makefile("rw", newline="\n")

def say(line):
    f.write(line + "\n")
    f.flush()

def ask(line):
    say(line)
    return f.readline().rstrip("\n")

rank, size = env["PMI_RANK"], int(env["PMI_SIZE"])
if "PMI_FD" not in env:
    say("cmd=initack pmiid=" + env["PMI_ID"])
    told = [f.readline().strip() for _ in range(4)]
    assert told == ["cmd=initack rc=0", f"cmd=set size={size}", f"cmd=set rank={rank}", "cmd=set debug=0"], told
if len(sys.argv) > 1:
    print("answer:", ask(sys.argv[1].replace("\\n", "\n")))
    sys.exit()
assert "rc=0" in ask("cmd=init pmi_version=1 pmi_subversion=1")
assert ask("cmd=get_maxes").startswith("cmd=maxes")
name = ask("cmd=get_my_kvsname").split("kvsname=")[1]
assert f"size={size}" in ask("cmd=get_universe_size")
assert "rc=0" in ask(f"cmd=put kvsname={name} key=card-{rank} value=rank {rank} is here")
assert ask("cmd=barrier_in") == "cmd=barrier_out rc=0"
for i in range(size):
    assert ask(f"cmd=get kvsname={name} key=card-{i}").endswith(f"value=rank {i} is here")
assert "rc=-1" in ask(f"cmd=get kvsname={name} key=nothing")
mapping = ask(f"cmd=get kvsname={name} key=PMI_process_mapping").split("value=")[1]
assert ask("cmd=finalize") == "cmd=finalize_ack rc=0"
print(f"rank {rank} of {size} {mapping}")
END

for mpi in mpich openmpi; do
	hello_of $mpi || without $mpi
done
[ ! -e "$test_build/gpuq/slurm/mpi/.libs/libgpuq-pmix.so" ] || test_set_prereq PMIX

# The ranks of a world of $1, whose sum is known.
whole_world() {
	seq 0 $(($1 - 1)) | sed "s/.*/rank & of $1 sum $(($1 * ($1 - 1) / 2))/" >want && sort out >got && test_cmp want got
}

test_expect_success 'start' '
	mkdir bin tmp && for name in sbatch salloc srun scontrol; do
		ln -s "$test_build/gpuq/gpuq" bin/$name || return 1
	done && PATH=$PWD/bin:$PATH && TMPDIR=$PWD/tmp && export PATH TMPDIR && start_gpuqd && node=$(gpuq nodes --json | json name)
'

test_expect_success 'ranks find one another by an inherited connection' '
	exits 0 srun -n 2 /usr/bin/python3 rank.py && sort out >got && seq 0 1 | sed "s/.*/rank & of 2 (vector,(0,1,2))/" >want && test_cmp want got
'

test_expect_success 'what is not of the protocol is hung up on, what is not offered is refused' '
	exits 0 srun --mpi=pmi2 -n 1 /usr/bin/python3 rank.py "cmd=dance" && says out "^answer: $" &&
	exits 0 srun --mpi=pmi2 -n 1 /usr/bin/python3 rank.py "GET / HTTP/1.0" && says out "^answer: $" &&
	exits 0 srun --mpi=pmi2 -n 1 /usr/bin/python3 rank.py "mcmd=spawn\nnprocs=1\nendcmd" && says out "rc=-1" &&
	exits 0 srun --mpi=pmi2 -n 1 /usr/bin/python3 rank.py "cmd=put kvsname=x key=$(printf %0100d 1) value=1" && says out "rc=-1"
'

test_expect_success 'types: list, none, unknown' '
	says_types() { srun --mpi=list >out && says out "^	pmi2$" && says out "^	none$"; } && says_types && exits 0 srun --mpi=none -n 2 env && ! grep -q ^PMI out &&
	exits 2 srun --mpi=ouija -n 2 true && says err "ouija is not known: --mpi=list"
'

test_expect_success 'from salloc: ranks in sessions' '
	exits 0 salloc -Q srun -n 4 /usr/bin/python3 rank.py && sort out >got && seq 0 3 | sed "s/.*/rank & of 4 (vector,(0,1,4))/" >want && test_cmp want got
'

test_expect_success 'a gang: each pod starts its part of every step' '
	cat >gang.sh <<-\END &&
	#!/bin/sh
	#SBATCH -N 2 -c 1 -o gang-%n.out
	for i in 1 2 3; do
		srun --ntasks-per-node=2 /usr/bin/python3 rank.py || exit
	done
	END
	exits 0 sbatch --wait gang.sh && test "$(cat gang-0.out gang-1.out | sort | uniq -c | tr -s " ")" = "$(
		seq 0 3 | sed "s/.*/ 3 rank & of 4 (vector,(0,1,4))/")"
'

test_expect_success 'a pod that starts no part does not hold the others for long' '
	cat >alone.sh <<-\END &&
	#!/bin/sh
	#SBATCH -N 2 -o alone-%n.out
	[ $SLURM_NODEID = 0 ] || srun echo ran
	END
	exits 0 sbatch --wait alone.sh && says alone-1.out "^ran$"
'

test_expect_success MPICH 'MPICH' '
	exits 0 srun -n 2 ./hello.mpich && whole_world 2 && exits 0 salloc -Q srun -n 3 ./hello.mpich && whole_world 3 && exits 9 srun -n 2 ./hello.mpich 9
'
test_expect_success OPENMPI,PMIX 'OpenMPI' '
	exits 0 srun --mpi=list && says out pmix && exits 0 srun -n 2 ./hello.openmpi && whole_world 2 &&
	exits 0 salloc -Q srun -n 3 --mpi=pmix ./hello.openmpi && whole_world 3 && exits 9 srun -n 2 ./hello.openmpi 9 && no_folder_left
'
test_expect_success MPICH,OPENMPI,PMIX 'both in a gang' '
	cat >both.sh <<-\END &&
	#!/bin/sh
	#SBATCH -N 2 -c 1 -o both-%n.out
	srun --ntasks-per-node=2 ./hello.mpich && srun --ntasks-per-node=2 ./hello.openmpi
	END
	exits 0 sbatch --wait both.sh && cat both-0.out both-1.out | sort | uniq -c | tr -s " " >got &&
	seq 0 3 | sed "s/.*/ 2 rank & of 4 sum 6/" >want && test_cmp want got && no_folder_left
'

test_done
