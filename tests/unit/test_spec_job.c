/* gpuq's own form of a job: what is accepted and as what, what is refused and how. */
#include "tests/unit/spec_help.h"

#define EIGHTY "01234567890123456789012345678901234567890123456789012345678901234567890123456789"

/* clang-format off */
static const struct spec_case accepted[] = {
	{ .text = "command: nvidia-smi\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"nvidia-smi\"]}" },
	{ .text = "command: [torchrun, train.py]\n"
	  "name: a.b\n"
	  "queue: research\n",
	  .want = "{\"name\":\"a.b\",\"queue\":\"research\",\"cpus\":1,\"command\":[\"torchrun\","
	  "\"train.py\"]}" },
	{ .text = "name: llama-ft\n"
	  "queue: research\n"
	  "time: 12h                 # walltime; D-HH:MM:SS, HH:MM:SS, MM, 90m, 1d12h\n"
	  "image: registry.example/llama:1.4\n"
	  "command: [torchrun, train.py]\n"
	  "gpus: 8                   # per pod; 0.5 = half a device; or gpu_memory: 10Gi, "
	  "gpu_cores: 30, mig: 1g.10gb\n"
	  "flavor: [h100, a100]      # in order of preference\n"
	  "cpus: 64\n"
	  "memory: 512Gi\n"
	  "pods: 4                   # gang of 4; pods: {min: 2, max: 8} is elastic\n"
	  "topology: {required: rack}\n"
	  "qos: normal\n"
	  "checkpoint: {signal: USR1, grace: 2m, interval: 30m}\n"
	  "retry: {limit: 3, on: [infra, exit:75]}\n"
	  "env: {NCCL_DEBUG: WARN}\n"
	  "volumes: [{claim: datasets, path: /data}]\n"
	  "depends: [afterok:123]\n"
	  "array: 0-99%10\n",
	  .want = "{\"name\":\"llama-ft\",\"queue\":\"research\",\"qos\":\"normal\",\"time\":\"12h\","
	  "\"flavor\":[\"h100\",\"a100\"],\"array\":\"0-99%10\",\"depends\":[\"afterok:123\"],"
	  "\"retry\":{\"limit\":3,\"on\":[\"infra\",\"exit:75\"]},"
	  "\"checkpoint\":{\"signal\":\"USR1\",\"grace\":\"2m\",\"interval\":\"30m\"},\"pods\":4,"
	  "\"gpus\":8,\"cpus\":64,\"memory\":\"512Gi\",\"image\":\"registry.example/llama:1.4\","
	  "\"command\":[\"torchrun\",\"train.py\"],\"env\":{\"NCCL_DEBUG\":\"WARN\"},"
	  "\"volumes\":[{\"claim\":\"datasets\",\"path\":\"/data\"}],"
	  "\"topology\":{\"required\":\"rack\"}}" },
	{ .text = "command: [a]\n"
	  "code: proj\n",
	  .want = "{\"name\":\"noname\",\"code\":\"proj\",\"cpus\":1,\"command\":[\"a\"]}" },
	{ .text = "command: [a]\n"
	  "code: true\n",
	  .want = "{\"name\":\"noname\",\"code\":\".\",\"cpus\":1,\"command\":[\"a\"]}" },
	{ .text = "command: [a]\n"
	  "code: false\n",
	  .want = "{\"name\":\"noname\",\"code\":false,\"cpus\":1,\"command\":[\"a\"]}" },
	{ .text = "command: [a]\n"
	  "code: {dir: /p, digest: 4552fa83be83fc037015ec3b882c27548898f0826168f8aaf085cb00a611e81d, bytes: 470, "
	  "subdir: a/b}\n",
	  .want = "{\"name\":\"noname\",\"code\":{\"dir\":\"/p\",\"digest\":"
	  "\"4552fa83be83fc037015ec3b882c27548898f0826168f8aaf085cb00a611e81d\",\"bytes\":470,"
	  "\"subdir\":\"a/b\"},\"cpus\":1,\"command\":[\"a\"]}" },
	{ .text = "name: j\n"
	  "command: [a]\n"
	  "pods: 96\n"
	  "gpus: 2\n"
	  "topology: {required: dc, slices: [{level: zone, size: 48}, {level: rack, size: 16}]}\n",
	  .want = "{\"name\":\"j\",\"pods\":96,\"gpus\":2,\"cpus\":0,\"command\":[\"a\"],"
	  "\"topology\":{\"required\":\"dc\",\"slices\":[{\"level\":\"zone\",\"size\":48},"
	  "{\"level\":\"rack\",\"size\":16}]}}" },
	{ .text = "{\"name\": \"j\", \"command\": [\"a\", \"b\"], \"gpus\": 1, \"env\": {\"N\": 1, \"B\": "
	  "true, \"F\": 1.50}}",
	  .want = "{\"name\":\"j\",\"gpus\":1,\"cpus\":0,\"command\":[\"a\",\"b\"],\"env\":{\"N\":\"1\","
	  "\"B\":\"true\",\"F\":\"1.50\"}}" },
	{ .text = "command: x\n"
	  "pods: {min: 2, max: 8}\n"
	  "gpus: 0.25\n",
	  .want = "{\"name\":\"noname\",\"pods\":{\"min\":2,\"max\":8},\"gpus\":0.25,\"cpus\":0,"
	  "\"command\":[\"/bin/sh\",\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "gpus: \"0.5\"\n"
	  "cpus: 500m\n"
	  "memory: 1.5Gi\n",
	  .want = "{\"name\":\"noname\",\"gpus\":0.5,\"cpus\":0.5,\"memory\":\"1536Mi\","
	  "\"command\":[\"/bin/sh\",\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "gpus: 500m\n",
	  .want = "{\"name\":\"noname\",\"gpus\":0.5,\"cpus\":0,\"command\":[\"/bin/sh\",\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "gpu_memory: 10Gi\n"
	  "gpu_cores: 30\n",
	  .want = "{\"name\":\"noname\",\"gpus\":1,\"gpu_memory\":\"10Gi\",\"gpu_cores\":30,\"cpus\":0,"
	  "\"command\":[\"/bin/sh\",\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "mig: 1g.10gb\n",
	  .want = "{\"name\":\"noname\",\"gpus\":1,\"mig\":\"1g.10gb\",\"cpus\":0,\"command\":[\"/bin/sh\","
	  "\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "mig: 1g.10gb\n"
	  "gpus: 3\n",
	  .want = "{\"name\":\"noname\",\"gpus\":3,\"mig\":\"1g.10gb\",\"cpus\":0,\"command\":[\"/bin/sh\","
	  "\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "cpus: 0\n"
	  "time: 1-02:03:04\n",
	  .want = "{\"name\":\"noname\",\"time\":\"1d2h3m4s\",\"cpus\":0,\"command\":[\"/bin/sh\",\"-c\","
	  "\"x\"]}" },
	{ .text = "command: x\n"
	  "time: 90\n",
	  .want = "{\"name\":\"noname\",\"time\":\"90m\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "time: unlimited\n",
	  .want = "{\"name\":\"noname\",\"time\":\"unlimited\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\","
	  "\"x\"]}" },
	{ .text = "script: |\n"
	  "  echo a\n"
	  "  echo b\n"
	  "script_args: [1, two]\n",
	  .want = "{\"name\":\"noname\",\"script\":\"#!/bin/sh\\necho a\\necho b\\n\","
	  "\"script_args\":[\"1\",\"two\"],\"cpus\":1}" },
	{ .text = "script: |\n"
	  "  #!/usr/bin/python3\n"
	  "  print(1)\n",
	  .want = "{\"name\":\"noname\",\"script\":\"#!/usr/bin/python3\\nprint(1)\\n\",\"cpus\":1}" },
	{ .text = "command: x\n"
	  "retry: 2\n",
	  .want = "{\"name\":\"noname\",\"retry\":{\"limit\":2,\"on\":[\"infra\",\"failure\"]},\"cpus\":1,"
	  "\"command\":[\"/bin/sh\",\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "retry: {limit: 1, on: [exit:75, oom, exit:3, exit:75, timeout]}\n",
	  .want = "{\"name\":\"noname\",\"retry\":{\"limit\":1,\"on\":[\"oom\",\"timeout\",\"exit:3\","
	  "\"exit:75\"]},\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "depends: afterok:1?afterany:2_7\n",
	  .want = "{\"name\":\"noname\",\"depends\":\"afterok:1?afterany:2_7\",\"cpus\":1,"
	  "\"command\":[\"/bin/sh\",\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "depends: [afterok:1:2, singleton, after:5+10]\n",
	  .want = "{\"name\":\"noname\",\"depends\":[\"afterok:1\",\"afterok:2\",\"singleton\","
	  "\"after:5+10\"],\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "array: 1,3,5-9:2\n",
	  .want = "{\"name\":\"noname\",\"array\":\"1-9:2\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\","
	  "\"x\"]}" },
	{ .text = "command: x\n"
	  "array: 7\n",
	  .want = "{\"name\":\"noname\",\"array\":\"7\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "signal: B:USR1@300\n"
	  "nodes: [\"n[1-3]\", m9]\n"
	  "exclude: n7\n",
	  .want = "{\"name\":\"noname\",\"signal\":\"B:USR1@300\",\"cpus\":1,\"command\":[\"/bin/sh\","
	  "\"-c\",\"x\"],\"nodes\":[\"n1\",\"n2\",\"n3\",\"m9\"],\"exclude\":[\"n7\"]}" },
	{ .text = "command: x\n"
	  "licenses: {matlab: 2}\n",
	  .want = "{\"name\":\"noname\",\"licenses\":{\"matlab\":2},\"cpus\":1,\"command\":[\"/bin/sh\","
	  "\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "licenses: matlab:2,ansys\n",
	  .want = "{\"name\":\"noname\",\"licenses\":{\"matlab\":2,\"ansys\":1},\"cpus\":1,"
	  "\"command\":[\"/bin/sh\",\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "node_selector: {zone: b, gpu: \"true\"}\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"x\"],"
	  "\"node_selector\":{\"zone\":\"b\",\"gpu\":\"true\"}}" },
	{ .text = "command: x\n"
	  "constraint: (a100|h100)&!old\n"
	  "node_selector: {zone: b}\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"x\"],"
	  "\"affinity\":{\"required\":[{\"match\":[{\"key\":\"a100\",\"operator\":\"Exists\"},"
	  "{\"key\":\"old\",\"operator\":\"DoesNotExist\"},{\"key\":\"zone\",\"operator\":\"In\","
	  "\"values\":[\"b\"]}]},{\"match\":[{\"key\":\"h100\",\"operator\":\"Exists\"},"
	  "{\"key\":\"old\",\"operator\":\"DoesNotExist\"},{\"key\":\"zone\",\"operator\":\"In\","
	  "\"values\":[\"b\"]}]}]}}" },
	{ .text = "command: x\n"
	  "affinity: {required: [{match: [{key: zone, operator: In, values: [a, b]}]}], preferred: "
	  "[{weight: 10, match: [{key: fast, operator: Exists}]}]}\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"x\"],"
	  "\"affinity\":{\"required\":[{\"match\":[{\"key\":\"zone\",\"operator\":\"In\","
	  "\"values\":[\"a\",\"b\"]}]}],\"preferred\":[{\"weight\":10,\"match\":[{\"key\":\"fast\","
	  "\"operator\":\"Exists\"}]}]}}" },
	{ .text = "command: x\n"
	  "tolerations: [{key: nvidia.com/gpu, operator: Exists}, {key: k, value: v, effect: "
	  "NoExecute, tolerationSeconds: 60}]\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"x\"],"
	  "\"tolerations\":[{\"key\":\"nvidia.com/gpu\",\"operator\":\"Exists\"},{\"key\":\"k\","
	  "\"value\":\"v\",\"effect\":\"NoExecute\",\"tolerationSeconds\":60}]}" },
	{ .text = "command: x\n"
	  "begin: 2027-02-01T00:00Z\n"
	  "deadline: 2027-02-02T00:00Z\n"
	  "hold: true\n"
	  "requeue: false\n"
	  "nice: -5\n",
	  .want = "{\"name\":\"noname\",\"begin\":\"2027-02-01T00:00:00.000Z\","
	  "\"deadline\":\"2027-02-02T00:00:00.000Z\",\"nice\":-5,\"hold\":true,\"requeue\":false,"
	  "\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"x\"]}" },
	{ .text = "command: x\n"
	  "labels: {team: ml}\n"
	  "annotations: {example.com/why: because of it}\n"
	  "comment: hi\n"
	  "exclusive: true\n",
	  .want = "{\"name\":\"noname\",\"exclusive\":true,\"comment\":\"hi\",\"labels\":{\"team\":\"ml\"},"
	  "\"annotations\":{\"example.com/why\":\"because of it\"},\"cpus\":1,"
	  "\"command\":[\"/bin/sh\",\"-c\",\"x\"]}" },
	{ .text = "image: i\n"
	  "gpus: 1\n"
	  "groups:\n"
	  "- {name: worker, pods: 8, command: w}\n"
	  "- {name: launcher, gpus: 0, image: other, command: [l]}\n",
	  .want = "{\"name\":\"noname\",\"groups\":[{\"name\":\"worker\",\"pods\":8,\"gpus\":1,\"cpus\":0,"
	  "\"image\":\"i\",\"command\":[\"/bin/sh\",\"-c\",\"w\"]},{\"name\":\"launcher\","
	  "\"cpus\":1,\"image\":\"other\",\"command\":[\"l\"]}]}" },
	{ .text = "groups: [{command: only}]\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"only\"]}" },
	{ .text = "groups: [{name: solo, command: only}]\n",
	  .want = "{\"name\":\"noname\",\"groups\":[{\"name\":\"solo\",\"cpus\":1,\"command\":[\"/bin/sh\","
	  "\"-c\",\"only\"]}]}" },
	{ .text = "command: a\n"
	  "---\n"
	  "command: b\n"
	  "name: second\n"
	  "---\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"a\"]}\n"
	  "{\"name\":\"second\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"b\"]}" },
	{ .text = "command: x\n"
	  "volumes:\n"
	  "- {memory: 8Gi, path: /dev/shm}\n"
	  "- {config_map: c, path: /c, read_only: true}\n"
	  "- {secret: s, path: /s}\n"
	  "- {host_path: /srv, path: /h}\n",
	  .want = "{\"name\":\"noname\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"x\"],"
	  "\"volumes\":[{\"memory\":\"8Gi\",\"path\":\"/dev/shm\"},{\"config_map\":\"c\","
	  "\"path\":\"/c\",\"read_only\":true},{\"secret\":\"s\",\"path\":\"/s\"},"
	  "{\"host_path\":\"/srv\",\"path\":\"/h\"}]}" },
	{ .text = "command: x\n"
	  "queue: a\n",
	  .want = "{\"name\":\"noname\",\"queue\":\"b\",\"time\":\"30m\",\"pods\":3,\"gpus\":2,\"cpus\":0,"
	  "\"command\":[\"/bin/sh\",\"-c\",\"x\"]}",
	  .argv = { "--queue=b", "-t", "30", "--gpus-per-node=2", "-N3" } },
	{ .text = "command: x\n"
	  "gpus: 2\n"
	  "pods: 4\n",
	  .want = "{\"name\":\"other\",\"pods\":4,\"gpus\":2,\"cpus\":0,\"command\":[\"/bin/sh\",\"-c\","
	  "\"x\"],\"affinity\":{\"required\":[{\"match\":[{\"key\":\"fast\","
	  "\"operator\":\"Exists\"}]}]},\"nodes\":[\"n1\",\"n2\"]}",
	  .argv = { "--name=other", "-w", "n[1-2]", "-C", "fast" } },
};
/* clang-format on */

/* clang-format off */
static const struct spec_case refused[] = {
	{ .text = "",
	  .want = "job.yaml:1:1: expected a job: the file is empty (a script begins with #!)" },
	{ .text = "# nothing\n",
	  .want = "job.yaml:1:1: expected a job: the file is empty (a script begins with #!)" },
	{ .text = "just words\n",
	  .want = "job.yaml:1:1: expected a job: a map of keys such as command" },
	{ .text = "- a\n",
	  .want = "job.yaml:1:1: expected a job: a map of keys such as command" },
	{ .text = "name: x\n",
	  .want = "job.yaml:1:1: command: expected a command (or a script): there is nothing to run" },
	{ .text = "command: []\n",
	  .want = "job.yaml:1:10: command: expected a command and its arguments" },
	{ .text = "command: \"\"\n",
	  .want = "job.yaml:1:10: command: expected a command, not nothing" },
	{ .text = "command: {a: b}\n",
	  .want = "job.yaml:1:10: command: expected a string, not a map" },
	{ .text = "command: [a, [b]]\n",
	  .want = "job.yaml:1:14: command[1]: expected a string, not a list" },
	{ .text = "kommand: x\n",
	  .want = "job.yaml:1:1: kommand: unknown key; did you mean 'command'?" },
	{ .text = "gpu: 1\n"
	  "command: x\n",
	  .want = "job.yaml:1:1: gpu: unknown key; did you mean 'gpus'?" },
	{ .text = "nonsense: 1\n"
	  "command: x\n",
	  .want = "job.yaml:1:1: nonsense: unknown key of a job (gpuq-job(5) lists them)" },
	{ .text = "command: x\n"
	  "gpus: 1.5\n",
	  .want = "job.yaml:2:7: gpus: expected whole devices (0 to 1024) or a part of one in hundredths "
	  "(0.01 to 0.99): the nearest are 1 and 2" },
	{ .text = "command: x\n"
	  "gpus: -1\n",
	  .want = "job.yaml:2:7: gpus: expected whole devices (0 to 1024) or a part of one in hundredths "
	  "(0.01 to 0.99): the nearest is 0" },
	{ .text = "command: x\n"
	  "gpus: -0.5\n",
	  .want = "job.yaml:2:7: gpus: expected whole devices (0 to 1024) or a part of one in hundredths "
	  "(0.01 to 0.99): the nearest is 0" },
	{ .text = "command: x\n"
	  "resources: {rdma/hca: -1}\n",
	  .want = "job.yaml:2:23: resources.rdma/hca: expected a number from 1, not '-1': the nearest is 1" },
	{ .text = "command: x\n"
	  "resources: {rdma/hca: 1.5}\n",
	  .want = "job.yaml:2:23: resources.rdma/hca: expected a number from 1, not '1.5': the nearest are 1 and 2" },
	{ .text = "command: x\n"
	  "resources: {rdma/hca: 0}\n",
	  .want = "job.yaml:2:23: resources.rdma/hca: expected a number from 1, not '0': the nearest is 1" },
	{ .text = "command: x\n"
	  "gpu_cores: {request: 30}\n",
	  .want = "job.yaml:2:12: gpu_cores: expected limit beside request, from 30 to 100, or gpu_cores: 30 for no "
	  "more than that" },
	{ .text = "command: x\n"
	  "gpu_cores: {request: 30, lim: 80}\n",
	  .want = "job.yaml:2:26: gpu_cores.lim: unknown key: expected request and limit" },
	{ .text = "command: x\n"
	  "gpu_cores: {request: 30, limits: 80}\n",
	  .want = "job.yaml:2:26: gpu_cores.limits: unknown key; did you mean 'limit'?" },
	{ .text = "command: x\n"
	  "annotations: {gpu-fraction: \"0.5\"}\n",
	  .want = "job.yaml:2:29: annotations.gpu-fraction: is read in manifests alone: request gpus: 0.5" },
	{ .text = "command: x\n"
	  "annotations: {gpu-memory: \"500\"}\n",
	  .want = "job.yaml:2:27: annotations.gpu-memory: is read in manifests alone: request gpu_memory: 10Gi" },
	{ .text = "command: x\n"
	  "annotations: {gpu-fraction-num-devices: \"2\"}\n",
	  .want = "job.yaml:2:41: annotations.gpu-fraction-num-devices: is read in manifests alone: request gpus: 0.5" },
	{ .text = "command: x\n"
	  "labels: {sharedgpu/gpu_request: \"0.5\"}\n",
	  .want = "job.yaml:2:33: labels.sharedgpu/gpu_request: KubeShare is not used: request a part of a device by "
	  "gpus: 0.5, in a manifest by annotation gpu-fraction" },
	{ .text = "command: x\n"
	  "annotations: {runai-gpu-group: g}\n",
	  .want = "job.yaml:2:32: annotations.runai-gpu-group: is set by KAI: request a part of a device by gpus: 0.5, "
	  "in a manifest by annotation gpu-fraction" },
	{ .text = "command: x\n"
	  "gpus: 0.5\n"
	  "gpu_cores: 30\n"
	  "annotations: {tencent.com/vcuda-core-limit: \"100\"}\n",
	  .want = "job.yaml:4:45: annotations.tencent.com/vcuda-core-limit: is read in manifests alone: request "
	  "gpu_cores: {request: 30, limit: 80}" },
	{ .text = "command: x\n"
	  "annotations: {nvidia.com/use-gpuuuid: GPU-7}\n",
	  .want = "job.yaml:2:39: annotations.nvidia.com/use-gpuuuid: gpuqd chooses the device: omit it" },
	{ .text = "command: x\n"
	  "flavor: a100\n"
	  "annotations: {nvidia.com/use-gputype: A100}\n",
	  .want = "job.yaml:3:39: annotations.nvidia.com/use-gputype: gpuqd chooses devices by flavor: name the site's in "
	  "flavor, in a manifest in gpuq.io/flavor" },
	{ .text = "command: x\n",
	  .want = "--annotation: gpu-fraction: is read in manifests alone: request gpus: 0.5",
	  .argv = { "--annotation=gpu-fraction=0.5" } },
	{ .text = "command: x\n",
	  .want = "--annotation: gpuq.io/job: is set by gpuqd: omit it",
	  .argv = { "--annotation=gpuq.io/job=1" } },
	{ .text = "command: x\n"
	  "gpus: 0.999\n",
	  .want = "job.yaml:2:7: gpus: expected whole devices (0 to 1024) or a part of one in hundredths "
	  "(0.01 to 0.99): the nearest are 0.99 and 1" },
	{ .text = "command: x\n"
	  "gpus: 0.0991\n",
	  .want = "job.yaml:2:7: gpus: expected whole devices (0 to 1024) or a part of one in hundredths "
	  "(0.01 to 0.99): the nearest are 0.09 and 0.1" },
	{ .text = "command: x\n"
	  "gpus: many\n",
	  .want = "job.yaml:2:7: gpus: expected whole devices (0 to 1024) or a part of one in hundredths "
	  "(0.01 to 0.99)" },
	{ .text = "command: x\n"
	  "gpus: 1025\n",
	  .want = "job.yaml:2:7: gpus: expected whole devices (0 to 1024) or a part of one in hundredths "
	  "(0.01 to 0.99): the nearest is 1024" },
	{ .text = "command: x\n"
	  "gpus: 1e30\n",
	  .want = "job.yaml:2:7: gpus: expected whole devices (0 to 1024) or a part of one in hundredths "
	  "(0.01 to 0.99): the nearest is 1024" },
	{ .text = "command: x\n"
	  "gpus: [1]\n",
	  .want = "job.yaml:2:7: gpus: expected whole devices (0 to 1024) or a part of one in hundredths "
	  "(0.01 to 0.99)" },
	{ .text = "command: x\n"
	  "gpus: 0.5\n"
	  "mig: 1g.5gb\n",
	  .want = "job.yaml:2:7: gpus: expected a whole number of MIG instances, at least 1" },
	{ .text = "command: x\n"
	  "gpus: 0\n"
	  "gpu_memory: 1Gi\n",
	  .want = "job.yaml:2:7: gpus: expected at least a part of a device with gpu_memory" },
	{ .text = "command: x\n"
	  "gpu_memory: 10\n",
	  .want = "job.yaml:2:13: gpu_memory: expected at least 1Mi, not 10 bytes, which a number without "
	  "a unit is: the nearest are 10Mi and 10Gi" },
	{ .text = "command: x\n"
	  "gpu_memory: 512Ki\n",
	  .want = "job.yaml:2:13: gpu_memory: expected at least 1Mi, not 524288 bytes, which a number "
	  "without a unit is: the nearest is 1Mi" },
	{ .text = "command: x\n"
	  "claims: [{name: G_, class: gpu.nvidia.com}]\n",
	  .want = "job.yaml:2:17: claims[0].name: expected a DNS label, as names of Kubernetes are: at most "
	  "63 lower-case letters, digits and '-', the first and the last a letter or digit, not 'G_'" },
	{ .text = "command: x\n"
	  "claims: [{name: a b, class: gpu.nvidia.com}]\n",
	  .want = "job.yaml:2:17: claims[0].name: expected a DNS label, as names of Kubernetes are: at most "
	  "63 lower-case letters, digits and '-', the first and the last a letter or digit, not 'a b'" },
	{ .text = "command: x\n"
	  "claims: [{name: g, class: -gpu}]\n",
	  .want = "job.yaml:2:27: claims[0].class: expected a DNS subdomain, as names of Kubernetes are: at "
	  "most 253 lower-case letters, digits, '.' and '-', the first and the last a letter or digit, not "
	  "'-gpu'" },
	{ .text = "command: x\n"
	  "claims: [{name: g, first: []}]\n",
	  .want = "job.yaml:2:27: claims[0].first: expected 1 to 8 of them, found 0" },
	{ .text = "command: x\n"
	  "mig: big\n",
	  .want = "job.yaml:2:6: mig: expected a MIG profile such as 1g.10gb, not 'big'" },
	{ .text = "command: x\n"
	  "mig: [1g.10gb, 9g.5gb]\n",
	  .want = "job.yaml:2:16: mig[1]: expected a MIG profile from 1g to 7g: a card has 7 slices of compute, "
	  "'9g.5gb' more" },
	{ .text = "command: x\n"
	  "gpus: 0.3\n"
	  "gpu_cores: {request: 30, limit: 130}\n",
	  .want = "job.yaml:3:33: gpu_cores.limit: expected limit from 30, which is requested, to 100: the nearest is "
	  "100" },
	{ .text = "command: x\n"
	  "gpus: 2\n"
	  "mig: 1g.5gb.shared\n",
	  .want = "job.yaml:2:7: gpus: expected 1 of 1g.5gb.shared, not 2: several replicas may be of the "
	  "same instance" },
	{ .text = "groups:\n- {name: a, command: [x], mig: 1g.5gb.shared}\n"
	  "- {name: b, command: [x], mig: [1g.5gb, 2g.10gb]}\n",
	  .want = "job.yaml:2:1: groups: expected one group with several profiles, replicas or mig_ok: a and "
	  "b have them" },
	{ .text = "command: x\n"
	  "mig: 1g.5gb\n"
	  "gpu_cores: 10\n",
	  .want = "job.yaml:2:6: mig: expected either mig or gpu_memory and gpu_cores: a profile has its "
	  "own" },
	{ .text = "command: x\n"
	  "gpu_cores: 101\n",
	  .want = "job.yaml:2:12: gpu_cores: expected 1 to 100, found 101: the nearest is 100; several devices "
	  "are requested by gpus" },
	{ .text = "command: x\n"
	  "pods: 0\n",
	  .want = "job.yaml:2:7: pods: expected a number of pods from 1 to 4096, or {min: M, max: N}" },
	{ .text = "command: x\n"
	  "pods: 5000\n",
	  .want = "job.yaml:2:7: pods: expected a number of pods from 1 to 4096, or {min: M, max: N}" },
	{ .text = "command: x\n"
	  "pods: {min: 3, max: 2}\n",
	  .want = "job.yaml:2:7: pods: expected max >= min" },
	{ .text = "command: x\n"
	  "pods: {min: 3}\n",
	  .want = "job.yaml:2:7: pods.max: missing; a range of pods needs it (an integer)" },
	{ .text = "command: x\n"
	  "pods: three\n",
	  .want = "job.yaml:2:7: pods: expected a number of pods from 1 to 4096, or {min: M, max: N}" },
	{ .text = "command: x\n"
	  "memory: lots\n",
	  .want = "job.yaml:2:9: memory: 'lots' is not a size: expected 512Gi, 100M, 1.5Gi or a number of bytes" },
	{ .text = "command: x\n"
	  "memory: -1\n",
	  .want = "job.yaml:2:9: memory: a size must not be negative ('-1')" },
	{ .text = "command: x\n"
	  "cpus: -1\n",
	  .want = "job.yaml:2:7: cpus: a quantity must not be negative ('-1')" },
	{ .text = "command: x\n"
	  "time: soon\n",
	  .want = "job.yaml:2:7: time: 'soon' is not a duration: expected 90m, 1d12h, 2:30:00 or a number of "
	  "minutes" },
	{ .text = "command: x\n"
	  "time: 0\n",
	  .want = "job.yaml:2:7: time: expected at least 1s, found 0s" },
	{ .text = "command: x\n"
	  "time: [1]\n",
	  .want = "job.yaml:2:7: time: expected a duration such as 90m, 1d12h or 2:30:00, found a list" },
	{ .text = "command: x\n"
	  "name: " EIGHTY EIGHTY EIGHTY "0123456789abcdef\n",
	  .want = "job.yaml:2:7: name: expected 1 to 255 bytes, found 256" },
	{ .text = "command: x\n"
	  "queue: -q\n",
	  .want = "job.yaml:2:8: queue: expected a name of at most 63 letters, digits, '.', '_' and '-', "
	  "or up to 16 of them with commas, found '-q'" },
	{ .text = "command: x\n"
	  "image: a b\n",
	  .want = "job.yaml:2:8: image: expected an image such as registry.example/name:tag" },
	{ .text = "command: x\n"
	  "workdir: here\n",
	  .want = "job.yaml:2:10: workdir: expected a directory that begins with '/', not 'here'" },
	{ .text = "command: x\n"
	  "array: 5-1\n",
	  .want = "job.yaml:2:8: array: expected indices from 0 to 4000000 such as 0-99, 1,3,5-9:2 or "
	  "0-99%10, not '5-1'" },
	{ .text = "command: x\n"
	  "array: 0-9%0\n",
	  .want = "job.yaml:2:8: array: expected indices from 0 to 4000000 such as 0-99, 1,3,5-9:2 or "
	  "0-99%10, not '0-9%0'" },
	{ .text = "command: x\n"
	  "array: 0-200000\n",
	  .want = "job.yaml:2:8: array: '0-200000' has too many elements: expected at most 100000" },
	{ .text = "command: x\n"
	  "array: 4000001\n",
	  .want = "job.yaml:2:8: array: expected indices from 0 to 4000000 such as 0-99, 1,3,5-9:2 or "
	  "0-99%10, not '4000001'" },
	{ .text = "command: x\n"
	  "array: \"\"\n",
	  .want = "job.yaml:2:8: array: expected indices from 0 to 4000000 such as 0-99, 1,3,5-9:2 or "
	  "0-99%10, not ''" },
	{ .text = "command: x\n"
	  "array: a-b\n",
	  .want = "job.yaml:2:8: array: expected indices from 0 to 4000000 such as 0-99, 1,3,5-9:2 or "
	  "0-99%10, not 'a-b'" },
	{ .text = "command: x\n"
	  "depends: [afterk:1]\n",
	  .want = "job.yaml:2:11: depends: unknown dependency 'afterk' (did you mean 'after'?): expected "
	  "after, afterany, afterok, afternotok, aftercorr or singleton" },
	{ .text = "command: x\n"
	  "depends: [afterok]\n",
	  .want = "job.yaml:2:11: depends: expected a dependency such as afterok:123, afterany:12:13_4, "
	  "after:12+5 (minutes) or singleton, not 'afterok'" },
	{ .text = "command: x\n"
	  "depends: [afterok:0]\n",
	  .want = "job.yaml:2:11: depends: expected a dependency such as afterok:123, afterany:12:13_4, "
	  "after:12+5 (minutes) or singleton, not 'afterok:0'" },
	{ .text = "command: x\n"
	  "depends: afterok:1,afterok:2?afterok:3\n",
	  .want = "job.yaml:2:10: depends: expected either ',' (all of them) or '?' (any of them) between "
	  "dependencies, not both" },
	{ .text = "command: x\n"
	  "depends: [afterok:1?afterok:2, afterok:3]\n",
	  .want = "job.yaml:2:11: depends: expected one string such as \"afterok:1?afterok:2\": a list "
	  "means all of them" },
	{ .text = "command: x\n"
	  "depends: [afterok:1+5]\n",
	  .want = "job.yaml:2:11: depends: expected a dependency such as afterok:123, afterany:12:13_4, "
	  "after:12+5 (minutes) or singleton, not 'afterok:1+5'" },
	{ .text = "command: x\n"
	  "depends: [aftercorr:1]\n",
	  .want = "job.yaml:2:10: depends: expected an array with aftercorr, which depends element by element" },
	{ .text = "command: x\n"
	  "retry: {limit: 1, on: [always]}\n",
	  .want = "job.yaml:2:8: retry: on: expected infra, failure, oom, timeout or exit:CODE (1-255), "
	  "not 'always'" },
	{ .text = "command: x\n"
	  "retry: {limit: 1, on: [exit:256]}\n",
	  .want = "job.yaml:2:8: retry: on: expected infra, failure, oom, timeout or exit:CODE (1-255), "
	  "not 'exit:256'" },
	{ .text = "command: x\n"
	  "retry: {on: [infra]}\n",
	  .want = "job.yaml:2:8: retry.limit: missing; a retry needs it (an integer)" },
	{ .text = "command: x\n"
	  "retry: 1001\n",
	  .want = "job.yaml:2:8: retry: expected 0 to 1000" },
	{ .text = "command: x\n"
	  "retry: {limit: 1, one: 2}\n",
	  .want = "job.yaml:2:19: retry.one: unknown key; did you mean 'on'?" },
	{ .text = "command: x\n"
	  "signal: FOO@1\n",
	  .want = "job.yaml:2:9: signal: expected [B:]SIGNAL[@SECONDS] such as USR1@300 or B:TERM@60, not "
	  "'FOO@1'" },
	{ .text = "command: x\n"
	  "checkpoint: {signal: NOPE}\n",
	  .want = "job.yaml:2:22: checkpoint.signal: expected a signal such as USR1 or 10, found 'NOPE'" },
	{ .text = "command: x\n"
	  "checkpoint: {grace: -1}\n",
	  .want = "job.yaml:2:21: checkpoint.grace: a duration must not be negative ('-1'); without end it is "
	  "'unlimited'" },
	{ .text = "command: x\n"
	  "env: {1A: b}\n",
	  .want = "job.yaml:2:11: env.1A: expected a variable's name: letters, digits, '_', '.', '-', no "
	  "digit first" },
	{ .text = "command: x\n"
	  "env: {A: [1]}\n",
	  .want = "job.yaml:2:10: env.A: expected text, found a list" },
	{ .text = "command: x\n"
	  "env: {NVIDIA_VISIBLE_DEVICES: all}\n",
	  .want = "job.yaml:2:31: env.NVIDIA_VISIBLE_DEVICES: is set by gpuqd: omit it" },
	{ .text = "command: x\n"
	  "env: [A=1]\n",
	  .want = "job.yaml:2:6: env: expected a map of strings, found a list" },
	{ .text = "command: x\n"
	  "labels: {gpuq.io/job: \"1\"}\n",
	  .want = "job.yaml:2:23: labels.gpuq.io/job: is set by gpuqd: omit it" },
	{ .text = "command: x\n"
	  "labels: {a b: c}\n",
	  .want = "job.yaml:2:15: labels.a b: expected a key such as team or example.com/team" },
	{ .text = "command: x\n"
	  "labels: {a: \"b c\"}\n",
	  .want = "job.yaml:2:13: labels.a: expected a label value: at most 63 of A-Z a-z 0-9 . _ -, "
	  "letters or digits at both ends" },
	{ .text = "command: x\n"
	  "annotations: {ALIYUN_COM_GPU_MEM_IDX: \"0\"}\n",
	  .want = "job.yaml:2:39: annotations.ALIYUN_COM_GPU_MEM_IDX: is set by gpuqd: omit it" },
	{ .text = "command: x\n"
	  "volumes: [{claim: a, path: data}]\n",
	  .want = "job.yaml:2:11: volumes[0]: expected path to begin with '/', not 'data'" },
	{ .text = "command: x\n"
	  "volumes: [{claim: a, secret: b, path: /d}]\n",
	  .want = "job.yaml:2:11: volumes[0]: expected exactly one of claim, config_map, secret, host_path,"
	  " nfs, memory" },
	{ .text = "command: x\n"
	  "volumes: [{claim: ../x, path: /d}]\n",
	  .want = "job.yaml:2:11: volumes[0]: expected claim to be the name of one: a-z, 0-9, '-' and '.', not '../x'" },
	{ .text = "command: x\n"
	  "volumes: [{secret: My, path: /d}]\n",
	  .want = "job.yaml:2:11: volumes[0]: expected secret to be the name of one: a-z, 0-9, '-' and '.', not 'My'" },
	{ .text = "command: x\n"
	  "volumes: [{claim: a, path: /d/../e}]\n",
	  .want = "job.yaml:2:11: volumes[0]: expected path without '..', not '/d/../e'" },
	{ .text = "command: x\n"
	  "volumes: [{claim: a, path: '/d:e'}]\n",
	  .want = "job.yaml:2:11: volumes[0]: expected path without ':', not '/d:e'" },
	{ .text = "command: x\n"
	  "volumes: [{claim: a}]\n",
	  .want = "job.yaml:2:11: volumes[0].path: missing; a volume needs it (text)" },
	{ .text = "command: x\n"
	  "volumes: {claim: a}\n",
	  .want = "job.yaml:2:10: volumes: expected a list of maps, found a map" },
	{ .text = "command: x\n"
	  "nodes: n[1-\n",
	  .want = "job.yaml:2:8: nodes: expected node names such as n1,n2 or n[01-04,7], not 'n[1-'" },
	{ .text = "command: x\n"
	  "nodes: \"n[1-99999]\"\n",
	  .want = "job.yaml:2:8: nodes: expected at most 4096 node names" },
	{ .text = "command: x\n"
	  "nodes: a;b\n",
	  .want = "job.yaml:2:8: nodes: 'a;b' is not a node name" },
	{ .text = "command: x\n"
	  "nodes: a\n"
	  "exclude: a\n",
	  .want = "job.yaml:3:10: exclude: node 'a' is both required and excluded" },
	{ .text = "command: x\n"
	  "constraint: a&\n",
	  .want = "job.yaml:2:13: constraint: expected labels of nodes such as a100, zone=b, a&b, (a|b)&!c,"
	  " not 'a&'" },
	{ .text = "command: x\n"
	  "constraint: \"[a|b]\"\n",
	  .want = "job.yaml:2:13: constraint: expected labels without brackets, such as a|b, not '[a|b]'" },
	{ .text = "command: x\n"
	  "constraint: (a\n",
	  .want = "job.yaml:2:13: constraint: expected labels of nodes such as a100, zone=b, a&b, (a|b)&!c,"
	  " not '(a'" },
	{ .text = "command: x\n"
	  "affinity: {required: [{match: [{key: zone, operator: Within, values: [a]}]}]}\n",
	  .want = "job.yaml:2:54: affinity.required[0].match[0].operator: expected In, NotIn, Exists, "
	  "DoesNotExist, Gt or Lt, found 'Within'" },
	{ .text = "command: x\n"
	  "affinity: {required: [{match: [{key: zone, operator: In}]}]}\n",
	  .want = "job.yaml:2:32: affinity.required[0].match[0]: expected at least one of values with "
	  "operator In" },
	{ .text = "command: x\n"
	  "affinity: {preferred: [{weight: 0, match: []}]}\n",
	  .want = "job.yaml:2:33: affinity.preferred[0].weight: expected 1 to 100, found 0" },
	{ .text = "command: x\n"
	  "affinity: {required: [{match: [{key: n, operator: Gt, values: [a]}]}]}\n",
	  .want = "job.yaml:2:32: affinity.required[0].match[0]: expected values with one integer for "
	  "operator Gt" },
	{ .text = "command: x\n"
	  "tolerations: [{operator: Exists, value: x}]\n",
	  .want = "job.yaml:2:15: tolerations[0]: expected no value with operator Exists" },
	{ .text = "command: x\n"
	  "tolerations: [{effect: Never, key: a}]\n",
	  .want = "job.yaml:2:15: tolerations[0]: expected effect NoSchedule, PreferNoSchedule or "
	  "NoExecute, not 'Never'" },
	{ .text = "command: x\n"
	  "tolerations: [{value: a}]\n",
	  .want = "job.yaml:2:15: tolerations[0]: expected a key: only operator Exists tolerates every key" },
	{ .text = "command: x\n"
	  "tolerations: [{key: a, operator: Same}]\n",
	  .want = "job.yaml:2:34: tolerations[0].operator: expected Exists or Equal" },
	{ .text = "command: x\n"
	  "licenses: {a: 0}\n",
	  .want = "job.yaml:2:15: licenses.a: expected NAME: COUNT, a count from 1" },
	{ .text = "command: x\n"
	  "licenses: a:b\n",
	  .want = "job.yaml:2:11: licenses: expected licenses such as matlab:2,ansys, not 'a:b'" },
	{ .text = "command: x\n"
	  "begin: 2027-02-03T00:00Z\n"
	  "deadline: 2027-02-02T00:00Z\n",
	  .want = "job.yaml:3:11: deadline: expected a time after begin" },
	{ .text = "command: x\n"
	  "begin: whenever\n",
	  .want = "job.yaml:2:8: begin: 'whenever' is not a time: expected 2026-12-01T09:00Z, 17:30, tomorrow, "
	  "now+2h or @SECONDS" },
	{ .text = "command: x\n"
	  "script: echo\n",
	  .want = "job.yaml:1:10: command: expected either a command or a script, not both" },
	{ .text = "script_args: [a]\n"
	  "command: x\n",
	  .want = "job.yaml:1:14: script_args: expected a script for these arguments" },
	{ .text = "groups: []\n",
	  .want = "job.yaml:1:9: groups: expected a list of groups, at least one" },
	{ .text = "groups: {a: b}\n",
	  .want = "job.yaml:1:9: groups: expected a list of groups, at least one" },
	{ .text = "groups: [{command: a}, {command: b}]\n",
	  .want = "job.yaml:1:10: groups[0]: expected a name: there are several groups" },
	{ .text = "groups: [{name: a, command: a}, {name: a, command: b}]\n",
	  .want = "job.yaml:1:33: groups[1].name: 'a' names an earlier one of the list as well" },
	{ .text = "groups: [{name: a, command: a}, {name: b}]\n",
	  .want = "job.yaml:1:33: groups[1].command: expected a command (or a script): there is nothing to "
	  "run" },
	{ .text = "groups: [a]\n",
	  .want = "job.yaml:1:10: groups[0]: expected a map, found 'a'" },
	{ .text = "groups: [{name: a, command: a, gpsu: 1}]\n",
	  .want = "job.yaml:1:32: groups[0].gpsu: unknown key; did you mean 'gpus'?" },
	{ .text = "groups: [{name: a, command: a, pods: 4000}, {name: b, command: b, pods: 97}]\n",
	  .want = "job.yaml:1:9: groups: expected at most 4096 pods, these are 4097" },
	{ .text = "groups: [{name: a, command: a, gpus: 0.123}]\n",
	  .want = "job.yaml:1:38: groups[0].gpus: expected whole devices (0 to 1024) or a part of one in "
	  "hundredths (0.01 to 0.99): the nearest are 0.12 and 0.13" },
	{ .text = "command: x\n"
	  "---\n"
	  "command: y\n"
	  "time: never\n",
	  .want = "job.yaml:4:7: time: 'never' is not a duration: expected 90m, 1d12h, 2:30:00 or a number of "
	  "minutes" },
	{ .text = "command: x\n"
	  "gpus:\n",
	  .want = "job.yaml:2:1: gpus: expected a value (leave the key out for its default)" },
	{ .text = "groups: [{command: x, gpus: }]\n",
	  .want = "job.yaml:1:23: groups[0].gpus: expected a value (leave the key out for its default)" },
	{ .text = "{\"command\": [\"true\"], \"gpus\": }",
	  .want = "job.yaml:1:23: gpus: expected a value (leave the key out for its default)" },
	{ .text = "command: x\n"
	  "command: y\n",
	  .want = "job.yaml:2:1: duplicate key 'command' (first at line 1)" },
	{ .text = "command: yes\n",
	  .want = "job.yaml:1:10: 'yes' is ambiguous: write true or false, or quote it" },
	{ .text = "command: x\n"
	  "hold: 1\n",
	  .want = "job.yaml:2:7: hold: expected true or false, found '1'" },
	{ .text = "command: x\n"
	  "nice: 2000000\n",
	  .want = "job.yaml:2:7: nice: expected -1000000 to 1000000, found 2000000" },
	{ .text = "command: x\n"
	  "flavor: [a/b]\n",
	  .want = "job.yaml:2:9: flavor: expected names of flavors such as a100, not 'a/b'" },
	{ .text = "command: x\n"
	  "topology: rack\n",
	  .want = "job.yaml:2:11: topology: expected a map, found 'rack'" },
	{ .text = "command: x\n"
	  "pods: 6\n"
	  "topology: {slices: [{level: block, size: 4}]}\n",
	  .want = "job.yaml:3:11: topology: expected pods in multiples of 4, the size of a slice" },
	{ .text = "command: x\n"
	  "topology: {slices: [{level: block, size: 6}, {level: rack, size: 4}]}\n",
	  .want = "job.yaml:2:11: topology: slices of 6 pods cannot consist of slices of 4" },
	{ .text = "command: x\n"
	  "topology: {slices: [{level: block}]}\n",
	  .want = "job.yaml:2:21: topology.slices[0].size: missing; a slice needs it (an integer)" },
	{ .text = "command: x\n"
	  "topology: {require: rack}\n",
	  .want = "job.yaml:2:12: topology.require: unknown key; did you mean 'required'?" },
	{ .text = "command: x\n",
	  .want = "--gpsu: unknown option, did you mean --gpus?",
	  .argv = { "--gpsu=1" } },
	{ .text = "command: x\n",
	  .want = "--gpus: expected [TYPE:]NUMBER of devices such as 4, 0.5 or a100:4, not '1.5': the nearest are 1 and 2",
	  .argv = { "--gpus=1.5" } },
	{ .text = "command: x\n",
	  .want = "expected an option, not 'extra'",
	  .argv = { "extra" } },
	{ .text = "groups: [{name: a, command: x}, {name: b, command: y}]\n",
	  .want = "--gpus: the job has several groups of pods: say it in the file",
	  .argv = { "--gpus=1" } },
	{ .text = "command: x\n"
	  "exclude: n1\n",
	  .want = "exclude: node 'n1' is both required and excluded",
	  .argv = { "-w", "n1" } },
	{ .text = "command: x\n",
	  .want = "--wrap: expected no script or command beside it",
	  .argv = { "--wrap=y" } },
	{ .text = "command: x\n",
	  .want = "--gpus: expected a multiple of the 3 pods: each has the same number of devices",
	  .argv = { "-N", "3", "--gpus=4" } },
	{ .text = "command: x\n",
	  .want = "--time: expected a value: TIME",
	  .argv = { "--time" } },
	{ .text = "command: x\n",
	  .want = "--hold: expected no value, not '1'",
	  .argv = { "--hold=1" } },
	{ .text = "command: x\n",
	  .want = "env.NVIDIA_VISIBLE_DEVICES: is set by gpuqd: omit it",
	  .argv = { "--env=NVIDIA_VISIBLE_DEVICES=all" } },
	{ .text = "command: x\n",
	  .want = "--uid: is not offered: a job runs as the user who submits it",
	  .argv = { "--uid=0" } },
};
/* clang-format on */

SPEC_CASES(spec_job, accepts, accepted)
{
	spec_check_case("job.yaml", &accepted[*ix]);
}

SPEC_CASES(spec_job, refuses, refused)
{
	spec_check_case("job.yaml", &refused[*ix]);
}
