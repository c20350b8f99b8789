#!/bin/bash
#SBATCH --exclude=bad[01-04],worse
#SBATCH --constraint=fast
#SBATCH -o nodes.out
echo "$SLURMD_NODENAME"
# submit: --nodelist="$node"
# ends: no
# meanwhile: wait_for 60 eval 'gpuq queue -h -j $id -o REASON | grep -q .' && job_is $id state PENDING
# meanwhile: scancel $id
# check: id=$(gpuq submit --parsable -w "$node" -x 'bad[01-04],worse' -o nodes.out --wrap 'echo $GPUQ_NODE_NAME') && exits 0 gpuq wait $id && grep -qx "$node" nodes.out
