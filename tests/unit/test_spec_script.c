/* Batch scripts: #SBATCH and #GPUQ lines, and the command line over them. */
#include "tests/unit/spec_help.h"

/* clang-format off */
static const struct spec_case accepted[] = {
	{ .text = "#!/bin/bash\n"
	  "echo hi\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --job-name=train\n"
	  "#SBATCH --time=1-12:00:00\n"
	  "#SBATCH --partition=research\n"
	  "#SBATCH --account=ml\n"
	  "#SBATCH --qos=high\n"
	  "#SBATCH --nodes=2\n"
	  "#SBATCH --ntasks-per-node=8\n"
	  "#SBATCH --cpus-per-task=8\n"
	  "#SBATCH --gres=gpu:a100:8\n"
	  "#SBATCH --mem=512G\n"
	  "#SBATCH --output=%x-%j.out\n"
	  "#SBATCH --error=%x-%j.err\n"
	  "srun true\n",
	  .want = "{\"name\":\"train\",\"queue\":\"research\",\"account\":\"ml\",\"qos\":\"high\","
	  "\"time\":\"1d12h\",\"flavor\":[\"a100\"],\"ntasks\":16,\"ntasks_per_node\":8,"
	  "\"cpus_per_task\":8,\"output\":\"%x-%j.out\",\"error\":\"%x-%j.err\",\"pods\":2,"
	  "\"gpus\":8,\"cpus\":64,\"memory\":\"512Gi\"}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -J t -t 90 -p q -A a -q x -N 2-4 -n 8 -c 2 -G 8 -d afterok:1:2 -a 0-9%2 -o o -e "
	  "e -i i -D /d -C a&b -w n[1-2] -x n3 -H -L l:2 -b now+2hours\n",
	  .want = "{\"name\":\"t\",\"queue\":\"q\",\"account\":\"a\",\"qos\":\"x\",\"time\":\"90m\","
	  "\"begin\":\"2027-01-15T10:00:00.000Z\",\"hold\":true,\"licenses\":{\"l\":2},"
	  "\"array\":\"0-9%2\",\"depends\":[\"afterok:1\",\"afterok:2\"],\"ntasks\":8,"
	  "\"cpus_per_task\":2,\"chdir\":\"/d\",\"output\":\"o\",\"error\":\"e\",\"input\":\"i\","
	  "\"pods\":{\"min\":2,\"max\":4},\"gpus\":4,\"cpus\":8,"
	  "\"affinity\":{\"required\":[{\"match\":[{\"key\":\"a\",\"operator\":\"Exists\"},"
	  "{\"key\":\"b\",\"operator\":\"Exists\"}]}]},\"nodes\":[\"n1\",\"n2\"],"
	  "\"exclude\":[\"n3\"]}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -N2 -Ht10 -c=4\n",
	  .want = "{\"name\":\"noname\",\"time\":\"10m\",\"hold\":true,\"cpus_per_task\":4,\"pods\":2,"
	  "\"cpus\":4}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --ntasks=10 --ntasks-per-node=4\n",
	  .want = "{\"name\":\"noname\",\"ntasks\":10,\"ntasks_per_node\":4,\"pods\":3,\"cpus\":4}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --ntasks=10\n",
	  .want = "{\"name\":\"noname\",\"ntasks\":10,\"cpus\":10}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -N 2 --ntasks-per-node=4 --gpus-per-task=1\n",
	  .want = "{\"name\":\"noname\",\"ntasks\":8,\"ntasks_per_node\":4,\"pods\":2,\"gpus\":4,"
	  "\"cpus\":4}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -n 4 --gpus-per-task=2\n",
	  .want = "{\"name\":\"noname\",\"ntasks\":4,\"gpus\":8,\"cpus\":4}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --job-n=foo --part night\n#SBATCH --mail-t=end --out x --dep=singleton --cpus-per-t=2\n",
	  .want = "{\"name\":\"foo\",\"queue\":\"night\",\"depends\":[\"singleton\"],"
	  "\"cpus_per_task\":2,\"output\":\"x\",\"mail_type\":[\"END\"],\"cpus\":2}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --switch=1 --hol\n",
	  .want = "{\"name\":\"noname\",\"hold\":true,\"cpus\":1}",
	  .warns = "run.sh:2:9: --switches is ignored: --topology keeps pods in one domain of the network\n" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --nodes=1K-4k\n",
	  .want = "{\"name\":\"noname\",\"pods\":{\"min\":1024,\"max\":4096},\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --mail-type=BEGIN\n#SBATCH --mail-type=END,FAIL\n",
	  .want = "{\"name\":\"noname\",\"mail_type\":[\"BEGIN\",\"END\",\"FAIL\"],\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --mail-type=BEGIN\n#SBATCH --mail-type=NONE --mail-type=END\n",
	  .want = "{\"name\":\"noname\",\"mail_type\":[\"NONE\",\"END\"],\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --mail-type=BEGIN\n#GPUQ --mail-type=END\n",
	  .want = "{\"name\":\"noname\",\"mail_type\":[\"END\"],\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -n 4 --ntasks-per-gpu=1\n",
	  .want = "{\"name\":\"noname\",\"ntasks\":4,\"gpus\":4,\"cpus\":4}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -N 2 -n 6 --ntasks-per-gpu=2 --cpus-per-gpu=3\n",
	  .want = "{\"name\":\"noname\",\"ntasks\":6,\"pods\":2,\"gpus\":2,\"cpus\":6}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -n 4 --gpus=2 --ntasks-per-gpu=1\n",
	  .want = "{\"name\":\"noname\",\"ntasks\":4,\"gpus\":2,\"cpus\":4}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -n 4 --gpus=0 --ntasks-per-gpu=1\n",
	  .want = "{\"name\":\"noname\",\"ntasks\":4,\"cpus\":4}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --ntasks-per-gpu=2\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1}",
	  .warns = "--ntasks-per-gpu: of no effect without --ntasks or a number of devices\n" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gpus=8 --gpus-per-node=4\n",
	  .want = "{\"name\":\"noname\",\"pods\":2,\"gpus\":4,\"cpus\":0}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gpus=4 -N 2\n",
	  .want = "{\"name\":\"noname\",\"pods\":2,\"gpus\":2,\"cpus\":0}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gres=gpu\n",
	  .want = "{\"name\":\"noname\",\"gpus\":1,\"cpus\":0}",
	  .warns = "" },
	/* No abbreviation of shard; whether it has CPUs is the site's to say. */
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gres=sh:2M\n",
	  .want = "{\"name\":\"noname\",\"resources\":{\"gres/sh\":2097152}}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gres=none\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gres=gpu:1g.10gb:2\n",
	  .want = "{\"name\":\"noname\",\"gpus\":2,\"mig\":\"1g.10gb\",\"cpus\":0}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gpus-per-node=h100:0.5\n",
	  .want = "{\"name\":\"noname\",\"flavor\":[\"h100\"],\"gpus\":0.5,\"cpus\":0}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gpus=a100\n",
	  .want = "{\"name\":\"noname\",\"flavor\":[\"a100\"],\"gpus\":1,\"cpus\":0}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --mem=2048\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1,\"memory\":\"2Gi\"}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --mem-per-cpu=4G -c 8\n",
	  .want = "{\"name\":\"noname\",\"cpus_per_task\":8,\"memory_per\":\"cpu\",\"cpus\":8,\"memory\":\"32Gi\"}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --mem-per-gpu=80G -G 4\n",
	  .want = "{\"name\":\"noname\",\"memory_per\":\"gpu\",\"gpus\":4,\"cpus\":0,\"memory\":\"320Gi\"}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --mem=0\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1}",
	  .warns = "run.sh:2:9: --mem: 0 means all memory of a node; memory is not counted\n" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --time=0\n",
	  .want = "{\"name\":\"noname\",\"time\":\"unlimited\",\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --time=UNLIMITED\n",
	  .want = "{\"name\":\"noname\",\"time\":\"unlimited\",\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --signal=USR1\n",
	  .want = "{\"name\":\"noname\",\"signal\":\"USR1@60\",\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --signal=B:TERM@120 --requeue --open-mode=append\n",
	  .want = "{\"name\":\"noname\",\"signal\":\"B:TERM@120\",\"append\":true,\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --no-requeue --nice --exclusive --comment='two words' --reservation=r\n",
	  .want = "{\"name\":\"noname\",\"nice\":100,\"requeue\":false,\"reservation\":\"r\","
	  "\"exclusive\":true,\"comment\":\"two words\",\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --nice=-20 --exclusive=user --kill-on-invalid-dep=yes --mail-type=END,FAIL "
	  "--mail-user=me@example.com\n",
	  .want = "{\"name\":\"noname\",\"nice\":-20,\"exclusive\":true,\"kill_on_invalid_dep\":true,"
	  "\"mail_type\":[\"END\",\"FAIL\"],\"mail_user\":\"me@example.com\",\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --export=NONE\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --export=ALL,A=b\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1,\"env\":{\"A\":\"b\"}}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --export=HOME,X=1\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1,\"env\":{\"X\":\"1\"}}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --deadline=2027-03-01T00:00:00 --begin=tomorrow\n",
	  .want = "{\"name\":\"noname\",\"begin\":\"2027-01-16T00:00:00.000Z\","
	  "\"deadline\":\"2027-03-01T00:00:00.000Z\",\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --begin=now+60\n",
	  .want = "{\"name\":\"noname\",\"begin\":\"2027-01-15T08:01:00.000Z\",\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --job-name=\"my job (1)\"\n",
	  .want = "{\"name\":\"my job (1)\",\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --job-name=\"my\377job\"\n",
	  .want = "{\"name\":\"my-job\",\"cpus\":1}",
	  .warns = "run.sh:2:9: --job-name: 'my\377job' becomes 'my-job'\n" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --time 10 # a comment\n"
	  "#SBATCH\n"
	  "\n"
	  "# text\n"
	  "##SBATCH --nope\n"
	  "# SBATCH --nope\n"
	  "#SBATCHX --nope\n"
	  "\t\n"
	  "#SBATCH --hold\n"
	  "echo\n"
	  "#SBATCH --nope\n",
	  .want = "{\"name\":\"noname\",\"time\":\"10m\",\"hold\":true,\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -G 8 -t 10\n"
	  "#GPUQ --gpus-per-node=2 --image=img:1 --retry=3:oom,exit:75 --checkpoint=USR1@2m\n"
	  "#GPUQ --flavor=h100,a100 --env=A=b=c --label=team=ml --topology=rack "
	  "--volume=data:/data:ro --volume=d2:/x --grace=10s --gpu-memory=10Gi --gpu-cores=30 "
	  "--cpus=2 --annotation=a=b\n",
	  .want = "{\"name\":\"noname\",\"time\":\"10m\",\"flavor\":[\"h100\",\"a100\"],"
	  "\"retry\":{\"limit\":3,\"on\":[\"oom\",\"exit:75\"]},"
	  "\"checkpoint\":{\"signal\":\"USR1\",\"grace\":\"2m\"},\"grace\":\"10s\","
	  "\"labels\":{\"team\":\"ml\"},\"annotations\":{\"a\":\"b\"},\"gpus\":2,"
	  "\"gpu_memory\":\"10Gi\",\"gpu_cores\":30,\"cpus\":2,\"image\":\"img:1\","
	  "\"env\":{\"A\":\"b=c\"},\"volumes\":[{\"claim\":\"data\",\"path\":\"/data\","
	  "\"read_only\":true},{\"claim\":\"d2\",\"path\":\"/x\"}],"
	  "\"topology\":{\"required\":\"rack\"}}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#GPUQ --mig=1g.10gb --queue=q --name=n --pods=3 --topology=preferred:zone "
	  "--container-image=c\n",
	  .want = "{\"name\":\"n\",\"queue\":\"q\",\"pods\":3,\"gpus\":1,\"mig\":\"1g.10gb\",\"cpus\":0,"
	  "\"image\":\"c\",\"topology\":{\"preferred\":\"zone\"}}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -G 8 -t 10 -p a\n",
	  .want = "{\"name\":\"noname\",\"queue\":\"b\",\"time\":\"20m\",\"gpus\":2,\"cpus\":0}",
	  .warns = "",
	  .argv = { "-g", "2", "-t20", "--queue=b" } },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gres=gpu:8\n",
	  .want = "{\"name\":\"noname\",\"gpus\":1,\"cpus\":0}",
	  .warns = "",
	  .argv = { "--gpus=1" } },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --cpu-freq=high --hint nomultithread --wait --parsable -Q --get-user-env "
	  "--switches=1@10 -m block\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1}",
	  .warns = "run.sh:2:9: --cpu-freq is ignored: clock rates are not changed\n"
	  "run.sh:2:25: --hint is ignored: tasks are not bound to cores\n"
	  "run.sh:2:67: --get-user-env is ignored: --export selects the environment\n"
	  "run.sh:2:82: --switches is ignored: --topology keeps pods in one domain of the network\n"
	  "run.sh:2:98: -m is ignored: tasks are numbered by blocks\n" },
	{ .text = "#!/bin/sh\n"
	  "#SBATCH --gpus=2 --cpus-per-gpu=3 --ntasks-per-gpu=2 --prefer=a|b --gres=gpu:2(S:0)\n",
	  .want = "run.sh:2:67: --gres: expected [TYPE:]NUMBER of devices such as 4, 0.5 or a100:4, not "
	  "'2(S:0)'" },
	{ .text = "#!/bin/sh\n"
	  "#SBATCH --gres=gres/gpu:2 --cpus-per-gpu=3 --ntasks-per-gpu=2 --prefer=a|b\n",
	  .want = "{\"name\":\"noname\",\"ntasks\":4,\"ntasks_per_node\":4,\"gpus\":2,\"cpus\":6,"
	  "\"affinity\":{\"preferred\":[{\"weight\":50,\"match\":[{\"key\":\"a\",\"operator\":"
	  "\"Exists\"}]},{\"weight\":50,\"match\":[{\"key\":\"b\",\"operator\":\"Exists\"}]}]}}",
	  .warns = "" },
	{ .text = "#!/bin/sh\n"
	  "#SBATCH --bb=x\n",
	  .want = "run.sh:2:9: --bb: is not offered: there are no burst buffers: copy what is needed "
	  "in the script, or mount it with --volume" },
	{ .text = "#!/bin/sh\n"
	  "#SBATCH --time=2:00:00 --time-min 30 --priority=77\n",
	  .want = "{\"name\":\"noname\",\"time\":\"2h\",\"time_min\":\"30m\",\"priority\":77,"
		  "\"cpus\":1}",
	  .warns = "" },
	{ .text = "#! /usr/bin/env python3\n"
	  "#SBATCH --time=5\n"
	  "print(1)\n",
	  .want = "{\"name\":\"noname\",\"time\":\"5m\",\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --dependency=singleton\n",
	  .want = "{\"name\":\"noname\",\"depends\":[\"singleton\"],\"cpus\":1}",
	  .warns = "" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --dependency=afterany:3?afterok:4_1\n",
	  .want = "{\"name\":\"noname\",\"depends\":\"afterany:3?afterok:4_1\",\"cpus\":1}",
	  .warns = "" },
};
/* clang-format on */

/* clang-format off */
static const struct spec_case refused[] = {
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --tiem=5\n",
	  .want = "run.sh:2:9: --tiem: unknown option, did you mean --time? (--ignore-unknown skips such "
	  "lines)" },
	{ .text = "#!/bin/bash\n"
	  "\n"
	  "#SBATCH --job-name=x --nonsense\n",
	  .want = "run.sh:3:22: --nonsense: unknown option (--ignore-unknown skips such lines)" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --nodes=1,2,4\n",
	  .want = "run.sh:2:9: --nodes: '1,2,4': lists and steps are not offered: a number, or a range "
	  "such as 2-8 for an elastic job" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -N 1-8:2\n",
	  .want = "run.sh:2:9: -N: '1-8:2': lists and steps are not offered: a number, or a range "
	  "such as 2-8 for an elastic job" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -N 5k\n",
	  .want = "run.sh:2:9: -N: expected a number of pods (one a node) such as 4 or 2-8, not '5k'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --priority=TOP\n",
	  .want = "run.sh:2:9: --priority: TOP is not offered: operators may say a number, and --nice of "
	  "the other jobs lets this one go first" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gpus=a100:1,v100:1\n",
	  .want = "run.sh:2:9: --gpus: 'a100:1,v100:1': the pods of a group have one type: --flavor "
	  "a100,v100 takes either, groups of a job file take both" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --nodelist=./hosts\n",
	  .want = "run.sh:2:9: --nodelist: './hosts': files of nodes are not read: submit with "
	  "--nodelist=$(paste -sd, FILE)" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --mail-user=$USER@x.org\n",
	  .want = "run.sh:2:9: --mail-user: '$USER@x.org': no shell replaces variables in these lines: "
	  "write the address, or leave it out for the submitter's" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -C gpu*4\n",
	  .want = "run.sh:2:9: -C: 'gpu*4': counts of nodes for each label are not offered: --nodes for "
	  "all of them, or groups of a job file with a count each" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -C [rack1*2&rack2*4]\n",
	  .want = "run.sh:2:9: -C: '[rack1*2&rack2*4]': counts of nodes for each label are not offered: "
	  "--nodes for all of them, or groups of a job file with a count each" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --exclu=n1\n",
	  .want = "run.sh:2:9: --exclu: could be --exclude, --exclusive (--ignore-unknown skips such lines)" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --n=4\n",
	  .want = "run.sh:2:9: expected an option, not '--n=4'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --nt=4\n",
	  .want = "run.sh:2:9: --nt: could be --ntasks, --ntasks-per-gpu, --ntasks-per-node, "
	  "--ntasks-per-core, --ntasks-per-socket (--ignore-unknown skips such lines)" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -Z\n",
	  .want = "run.sh:2:9: -Z: unknown option (--ignore-unknown skips such lines)" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --time=soon\n",
	  .want = "run.sh:2:9: --time: 'soon' is not a duration: expected 90m, 1d12h, 2:30:00 or a number of "
	  "minutes" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -t\n",
	  .want = "run.sh:2:9: -t: expected a value: TIME" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --hold=yes\n",
	  .want = "run.sh:2:9: --hold: expected no value, not 'yes'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --nodes=0\n",
	  .want = "run.sh:2:9: --nodes: expected a number of pods (one a node) such as 4 or 2-8, not '0'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -N 4-2\n",
	  .want = "run.sh:2:9: -N: expected a number of pods (one a node) such as 4 or 2-8, not '4-2'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -N x\n",
	  .want = "run.sh:2:9: -N: expected a number of pods (one a node) such as 4 or 2-8, not 'x'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --nodes=9999\n",
	  .want = "run.sh:2:9: --nodes: expected a number of pods (one a node) such as 4 or 2-8, not '9999'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gres=shard:2\n",
	  .want = "run.sh:2:9: --gres: shard:2: part of a device is --gpus=0.5 or --gpu-memory=10G here" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gres=gpu:x:y:1\n",
	  .want = "run.sh:2:9: --gres: expected [TYPE:]NUMBER of devices such as 4, 0.5 or a100:4, not 'x:y:1'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gpus=-1\n",
	  .want = "run.sh:2:9: --gpus: expected [TYPE:]NUMBER of devices such as 4, 0.5 or a100:4, not '-1'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gpus=1.5\n",
	  .want = "run.sh:2:9: --gpus: expected [TYPE:]NUMBER of devices such as 4, 0.5 or a100:4, not '1.5': the nearest are 1 and 2" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gres=gpu:1.5\n",
	  .want = "run.sh:2:9: --gres: expected [TYPE:]NUMBER of devices such as 4, 0.5 or a100:4, not '1.5': the nearest "
	  "are 1 and 2" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gres=gpu:2k\n",
	  .want = "run.sh:2:9: --gres: expected [TYPE:]NUMBER of devices such as 4, 0.5 or a100:4, not '2k': the nearest "
	  "is 1024" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gres=gpu:a100:many\n",
	  .want = "run.sh:2:9: --gres: expected [TYPE:]NUMBER of devices such as 4, 0.5 or a100:4, not 'a100:many'" },
	{ .text = "#!/bin/bash\n"
	  "#GPUQ --gpu-cores=150\n",
	  .want = "run.sh:2:7: --gpu-cores: expected a percentage from 1 to 100, not '150': the nearest is 100" },
	{ .text = "#!/bin/bash\n"
	  "#GPUQ --label=sharedgpu/gpu_request=0.5\n",
	  .want = "run.sh:2:7: --label: sharedgpu/gpu_request: KubeShare is not used: request a part of a device by gpus: "
	  "0.5, in a manifest by annotation gpu-fraction" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gpus=3 -N 2\n",
	  .want = "run.sh: --gpus: expected a multiple of the 2 pods: each has the same number of devices" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gpus=8 --gpus-per-node=4 -N 3\n",
	  .want = "run.sh: --gpus: expected 3 pods times --gpus-per-node" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --mem=lots\n",
	  .want = "run.sh:2:9: --mem: 'lots' is not a memory size: expected 4000 (MiB), 512M, 64G or 2T" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --array=9-1\n",
	  .want = "run.sh:2:9: --array: expected indices from 0 to 4000000 such as 0-99, 1,3,5-9:2 or "
	  "0-99%10, not '9-1'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --dependency=afterok\n",
	  .want = "run.sh:2:9: --dependency: expected a dependency such as afterok:123, afterany:12:13_4, "
	  "after:12+5 (minutes) or singleton, not 'afterok'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --dependency=expand:1\n",
	  .want = "run.sh:2:9: --dependency: unknown dependency 'expand': expected after, afterany, "
	  "afterok, afternotok, aftercorr or singleton" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --signal=NOPE@1\n",
	  .want = "run.sh:2:9: --signal: expected [B:]SIGNAL[@SECONDS] such as USR1@300 or B:TERM@60, not "
	  "'NOPE@1'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --export=NONE,A=b\n",
	  .want = "run.sh:2:9: --export: expected NONE alone, not 'NONE,A=b'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --open-mode=both\n",
	  .want = "run.sh:2:9: --open-mode: expected append or truncate, not 'both'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --mail-type=SOMETIMES\n",
	  .want = "run.sh:2:9: --mail-type: expected BEGIN, END, FAIL, REQUEUE, TIME_LIMIT, ALL or NONE, "
	  "not 'SOMETIMES'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --nodelist=n[1-\n",
	  .want = "run.sh:2:9: --nodelist: expected node names such as n1,n2 or n[01-04,7], not 'n[1-'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --constraint=[a|b)\n",
	  .want = "run.sh:2:9: --constraint: expected labels of nodes such as a100, zone=b, a&b, (a|b)&!c, "
	  "not '[a|b)'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --constraint=[a|b] -N 2\n",
	  .want = "run.sh: --constraint [a|b]: one label for all nodes of a job is not offered: name it, or use | "
	  "without brackets" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --nice=lots\n",
	  .want = "run.sh:2:9: --nice: expected a number from 0 to 1000000, not 'lots'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --wrap=true\n",
	  .want = "run.sh:2:9: --wrap: is for the command line only" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --uid=0\n",
	  .want = "run.sh:2:9: --uid: is not offered: a job runs as the user who submits it" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH hetjob\n",
	  .want = "run.sh:2:9: hetjob: a job of several parts is a job file with groups here" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH extra words\n",
	  .want = "run.sh:2:9: expected an option, not 'extra'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --comment='open\n",
	  .want = "run.sh:2:9: expected a closing '" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --partition=a,,b\n",
	  .want = "run.sh:2:9: --partition: expected names: letters, digits, '.', '_', '-', with commas, not 'a,,b'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --begin=someday\n",
	  .want = "run.sh:2:9: --begin: 'someday' is not a time: expected 2026-12-01T09:00Z, 17:30, tomorrow, "
	  "now+2h or @SECONDS" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --deadline=2027-02-01 --begin=2027-02-02\n",
	  .want = "run.sh: deadline: expected a time after begin" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --retry=x\n",
	  .want = "run.sh:2:9: --retry: expected LIMIT[:ON,...] such as 3 or 3:infra,exit:75, not 'x'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --checkpoint=NOPE\n",
	  .want = "run.sh:2:9: --checkpoint: expected SIGNAL[@GRACE] such as USR1@2m, not 'NOPE'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --env=A\n",
	  .want = "run.sh:2:9: --env: expected KEY=VALUE, not 'A'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --volume=data\n",
	  .want = "run.sh:2:9: --volume: expected CLAIM:/PATH[:ro], not 'data'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --mig=huge\n",
	  .want = "run.sh:2:9: --mig: expected a MIG profile such as 1g.10gb, not 'huge'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --label=gpuq.io/job=1\n",
	  .want = "run.sh:2:9: --label: gpuq.io/job: is set by gpuqd: omit it" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --kill-on-invalid-dep=maybe\n",
	  .want = "run.sh:2:9: --kill-on-invalid-dep: expected yes or no, not 'maybe'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --\n",
	  .want = "run.sh:2:9: --: unknown option (--ignore-unknown skips such lines)" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --=x\n",
	  .want = "run.sh:2:9: expected an option, not '--=x'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH -\n",
	  .want = "run.sh:2:9: expected an option, not '-'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --j=x\n",
	  .want = "run.sh:2:9: expected an option, not '--j=x'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --cpus-per-task=0\n",
	  .want = "run.sh:2:9: --cpus-per-task: expected a number of CPUs from 1 to 100000, not '0'" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gpus-per-task=1000 -n 4\n",
	  .want = "run.sh: --gpus-per-task: expected at most 1024 devices of each pod, which has 4 tasks" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --gpus=2000\n",
	  .want = "run.sh: --gpus: expected at most 1024 devices of each pod, these are 2000: the nearest is 1024" },
	{ .text = "#!/bin/bash\n"
	  "#SBATCH --ntasks=1000000 --ntasks-per-node=1\n",
	  .want = "run.sh: expected at most 4096 pods, these are 1000000" },
	{ .text = "#!/bin/sh\r\n"
	  "echo\r\n",
	  .want = "run.sh:1:1: expected lines that end in a newline only: these end as on DOS (dos2unix "
	  "mends it)" },
	{ .text = "#!/bin/bash\n"
	  "true\n",
	  .want = "--tiem: unknown option, did you mean --time?",
	  .argv = { "--tiem=5" } },
};
/* clang-format on */

SPEC_CASES(spec_script, accepts, accepted)
{
	spec_check_case("run.sh", &accepted[*ix]);
}

SPEC_CASES(spec_script, refuses, refused)
{
	spec_check_case("run.sh", &refused[*ix]);
}

Test(spec_script, is_told_slurms_variables_when_it_speaks_to_slurm)
{
	static const struct {
		const char *text, *argv[2];
		bool want;
	} rows[] = {
		{ "#!/bin/sh\n#SBATCH -N 2\ntrue\n", { NULL }, true },
		{ "#!/bin/sh\n#GPUQ -N 2\ntrue\n", { NULL }, false },
		{ "#!/bin/sh\n#SBATCH -N 2\n#GPUQ --slurm-env=no\ntrue\n", { NULL }, false },
		{ "#!/bin/sh\n#SBATCH -N 2\ntrue\n", { "--slurm-env=no" }, false },
		{ "#!/bin/sh\ntrue\n#SBATCH -N 2\n", { NULL }, false },
		{ "#!/bin/sh\ntrue\n", { "--slurm-env" }, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(64 << 20);
		struct gpuq_buf warnings = GPUQ_BUF_INIT;
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_specs specs;

		cr_assert_eq(spec_read_text(&a, "run.sh", rows[i].text, rows[i].argv, &specs,
					    &warnings, &err),
			     0, "%s", err.text);
		cr_expect_eq(specs.items[0].slurm_env, rows[i].want, "row %zu", i);
		gpuq_buf_done(&warnings);
		gpuq_arena_done(&a);
	}
}
