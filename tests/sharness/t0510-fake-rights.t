#!/bin/sh
test_description='doctor asks the cluster what gpuqd may do, and says which feature lacks which right'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

rights() {
	gpuq doctor --json | grep '"check":"rights"'
}

test_expect_success 'all rights' '
	start_fake && start_fake_gpuqd && exits 0 gpuq doctor && says out "^ok +rights +the account of gpuqd has all rights" &&
	test "$(rights | json result)" = ok
'

test_expect_success 'asked in each namespace of a queue, each right once' '
	printf "version: 1\nqueues: [{name: a, namespace: team-a}, {name: b, namespace: team-a}]\n" >site.yaml && gpuq apply -f site.yaml &&
	/usr/bin/python3 "$test_source/tests/sharness/rpc.py" "$gpuqd_socket" cluster.rights "{}" >r.json &&
	/usr/bin/python3 -c "
import json
rows = json.load(open(\"r.json\"))[\"rights\"]
keys = [(r[\"feature\"], r[\"verb\"], r[\"resource\"], r[\"namespace\"]) for r in rows]
assert len(keys) == len(set(keys)), keys
assert (\"running jobs\", \"create\", \"pods\", \"team-a\") in keys, keys
assert sum(r[\"namespace\"] == \"\" and r[\"resource\"] == \"nodes\" for r in rows) == 3, rows
assert all(r[\"asked\"] and r[\"allowed\"] for r in rows), rows"
'

test_expect_success 'what is missing is told by feature: an option warns, what is needed is bad' '
	kill_gpuqd && stop_fake && start_fake --deny "create/pods/exec,create/pods/attach,delete/pods,get/pods/log" && rm -rf state && start_fake_gpuqd &&
	exits 1 gpuq doctor && says out "^warning +rights +gpuq exec: the account of gpuqd may not create pods/exec in " &&
	says out "^bad +rights +running jobs: .* may not delete pods in " && says out "^bad +rights +gpuq logs: .* may not get pods/log in " &&
	says out "etc/kubernetes/base" && says out "etc/kubernetes/optional/exec.yaml" && ! grep -q "scripts:" out && test "$(rights | wc -l)" = 4
'

test_expect_success 'an option is asked for where it is on: HAMi'\''s nodes by a pool; its file is named, and API groups once' '
	kill_gpuqd && stop_fake && start_fake --deny "patch/nodes,get/podgroups,get/jobsets" && rm -rf state && start_fake_gpuqd &&
	{ gpuq doctor >out || :; } && ! grep "hami: the account\|may not" out &&
	printf "version: 1\nadopt: {namespaces: [{name: team}]}\npools: [{name: h, selector: {hami: h}, sharing: hami}]\n" >site.yaml && gpuq apply -f site.yaml &&
	{ gpuq doctor >out || :; } && says out "^warning +rights +pools with sharing: hami: the account of gpuqd may not patch nodes" && says out "etc/kubernetes/optional/hami.yaml" &&
	says out "may not get podgroups \(scheduling.x-k8s.io, scheduling.volcano.sh\) in team, get jobsets in team\$" && says out "etc/kubernetes/optional/adopt.yaml"
'

test_expect_success ROOT 'not for others to ask' '
	open_to_all && { as nobody env HOME=/ gpuq doctor >out || :; } && says out "^ok +nodes" && ! grep rights out
'

test_expect_success 'what cannot be asked is not known, and nobody waits for it' '
	stop_fake && { gpuq doctor >out || :; } && says out "^warning +rights +running jobs: not known whether the account of gpuqd may create pods in " && kill_gpuqd
'

test_expect_success 'kustomization.yaml has each file of base, and names the image of the Deployment' '
	/usr/bin/python3 -c "
import glob, os, sys, yaml
top = sys.argv[1]
k = yaml.safe_load(open(top + \"/kustomization.yaml\"))
files = sorted(\"base/\" + os.path.basename(f) for f in glob.glob(top + \"/base/*.yaml\"))
assert files and k[\"resources\"] == files + [\"optional/identity.yaml\"], (k[\"resources\"], files)
pod = [d for d in yaml.safe_load_all(open(top + \"/base/40-gpuqd.yaml\")) if d[\"kind\"] == \"Deployment\"][0][\"spec\"][\"template\"][\"spec\"]
images = set(c[\"image\"].rsplit(\":\", 1)[0] for c in pod[\"containers\"] + pod[\"initContainers\"])
assert list(images) == [k[\"images\"][0][\"name\"]], images" "$test_source/etc/kubernetes"
'

test_done
