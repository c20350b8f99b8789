# lib.sh - a whole-system test of a client of Slurm: its daemon, Slurm's names, the clients' python
. "$(dirname "$0")/../sharness/lib.sh"
GPUQ_CLIENTS=${GPUQ_CLIENTS:?run tests/clients/clients}

client=$GPUQ_CLIENTS/bin/python3

# start_clients: gpuqd, and Slurm's names first in the path
start_clients() {
	mkdir bin && for name in sbatch salloc srun squeue scancel sinfo sacct scontrol sshare sprio sacctmgr; do
		ln -s "$test_build/gpuq/gpuq" "bin/$name" || return 1
	done
	PATH=$PWD/bin:$GPUQ_CLIENTS/bin:$PATH
	export PATH
	start_gpuqd &&
		# Some clients do not quote paths: a folder without a blank, for them and for what they keep in $HOME.
		mkdir "$TMPDIR/plain" && HOME=$TMPDIR/plain && cd "$HOME"
}
