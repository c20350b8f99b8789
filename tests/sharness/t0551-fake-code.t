#!/bin/sh
test_description='submit --code on the fake cluster: a ConfigMap, an init container, the default of a queue'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

q="'"
XDG_CACHE_HOME=$PWD/cache && export XDG_CACHE_HOME

api() {
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/default/$1"
}

# maps: names of ConfigMaps, each with what is in it
maps() {
	api configmaps | /usr/bin/python3 -c '
import base64, gzip, io, json, sys, tarfile
for m in json.load(sys.stdin)["items"]:
    code = m.get("binaryData", {}).get("code.tgz")
    names = tarfile.open(fileobj=io.BytesIO(base64.b64decode(code))).getnames() if code else []
    print(m["metadata"]["name"], m["immutable"], m["metadata"]["labels"]["gpuq.io/job"], *sorted(m.get("data", {})), *names)'
}

# pod ID EXPR: of the spec of its first pod
pod() {
	api pods | /usr/bin/python3 -c '
import json, sys
s = [p for p in json.load(sys.stdin)["items"] if p["metadata"]["labels"].get("gpuq.io/job") == sys.argv[1]][0]["spec"]
main, init = s["containers"][0], s.get("initContainers", [None])[0]
env = {e["name"]: e.get("value") for e in main["env"]}
print(eval(sys.argv[2]))' "$1" "$2"
}

carried() {
	(cd proj/sub && submit --annotation=gpuq.test/hang=true -p code "$@")
}

test_expect_success 'a queue whose scripts carry their directory' '
	printf "version: 1\ncode: {keep: 1s}\nqueues:\n- {name: code, quota: 4, image: base, code: true}\n- {name: plain, quota: 4, image: base}\n" >site.yaml &&
	mkdir -p proj/sub && echo code >proj/train.py && printf "#!/bin/sh\n#SBATCH --cpus-per-task=1\npython train.py\n" >proj/sub/job.sh &&
	start_fake && start_fake_gpuqd --site "$PWD/site.yaml"
'

test_expect_success 'the script runs in its directory, which an init container of the same image unpacks' '
	id=$(carried job.sh) && job_becomes "$id" RUNNING 60 && test "$(maps)" = "$(maps | cut -d- -f1,2)-$id-script True $id script job.sh" &&
	test "$(pod "$id" "main[\"workingDir\"], env[\"GPUQ_CODE_DIR\"], env[\"SLURM_SUBMIT_DIR\"]")" = "(${q}/gpuq-code$q, ${q}/gpuq-code$q, ${q}/gpuq-code$q)" &&
	test "$(pod "$id" "init[\"name\"], init[\"image\"], init[\"command\"][0]")" = "(${q}gpuq-code$q, ${q}base$q, ${q}/bin/sh$q)" &&
	test "$(pod "$id" "sorted(m[\"mountPath\"] for m in main[\"volumeMounts\"]) == sorted(m[\"mountPath\"] for m in init[\"volumeMounts\"])")" = True
'

test_expect_success 'the directory that is named wins, from a job below it; none carries nothing' '
	b=$(carried --code .. job.sh) && job_becomes "$b" RUNNING 60 && test "$(pod "$b" "main[\"workingDir\"]")" = /gpuq-code/sub && maps >out && says out " $b script sub sub/job.sh train.py$" &&
	c=$(carried --code none job.sh) && job_becomes "$c" RUNNING 60 && test "$(pod "$c" "init")" = None && gpuq submit --dry-run -o yaml -p code proj/sub/job.sh >out && says out "^code: .*$PWD$" &&
	d=$(submit --annotation=gpuq.test/hang=true -p plain proj/sub/job.sh) && job_becomes "$d" RUNNING 60 && test "$(pod "$d" "init")" = None && gpuq cancel "$c" "$d" &&
	gpuq plan -p code proj/sub/job.sh >out
'

test_expect_success 'a relative --chdir counts from the directory of submission in the copy, and does not leave it' '
	c=$(carried --code .. --chdir ../other/. job.sh) && job_becomes "$c" RUNNING 60 && test "$(pod "$c" "main[\"workingDir\"]")" = /gpuq-code/other && gpuq cancel "$c" &&
	(cd proj/sub && exits 1 gpuq submit -p code --chdir .. job.sh && says err "chdir: .. leaves the directory that the job carries: .*--code DIR") &&
	(cd proj/sub && exits 1 gpuq submit -p code --code .. --chdir ../.. job.sh && says err "chdir: ../.. leaves")
'

test_expect_success 'it goes with the job, from the cluster and from gpuqd' '
	gpuq cancel "$id" "$b" && job_becomes "$b" CANCELLED && wait_for 60 eval "test -z \"\$(maps)\"" && wait_for 60 eval "test -z \"\$(ls state/code)\""
'

test_expect_success 'one ConfigMap for an array, also through a kill' '
	id=$(carried -a 0-2 job.sh) && wait_for 60 eval "test \$(n_pods $id) = 3" && kill_gpuqd && start_fake_gpuqd && job_becomes "${id}_2" RUNNING 60 &&
	test "$(maps | wc -l)" = 1 && test "$(grep -c "\"verb\":\"create\",\"resource\":\"configmaps\".*$id-script" audit)" = 1 && gpuq cancel "$id" && wait_for 60 eval "test -z \"\$(maps)\""
'

test_expect_success 'what fits into no ConfigMap is refused, with its size and what to do' '
	head -c 1100000 /dev/urandom >proj/big && exits 1 gpuq submit -p code --code proj --wrap true && says err "it takes 107[0-9] KiB compressed, and 1024 KiB fit into a ConfigMap: .*.gpuqignore.* volume" &&
	test -z "$(ls state/code | grep part)" && head -c 1045000 /dev/urandom >proj/big && exits 1 gpuq submit -p code --code proj --wrap true && says err "KiB fit into a ConfigMap" &&
	echo big >proj/.gpuqignore && exits 0 gpuq submit --hold -p code --code proj --wrap true
'

test_expect_success 'the image of the site unpacks' '
	printf "version: 1\ncode: {image: tools, keep: 1s}\n" >more.yaml && gpuq apply -f more.yaml && id=$(carried --image other job.sh) && job_becomes "$id" RUNNING 60 &&
	test "$(pod "$id" "init[\"image\"], main[\"image\"]")" = "(${q}tools$q, ${q}other$q)" && gpuq cancel "$id"
'

test_expect_success 'a manifest says itself what it mounts' '
	printf "apiVersion: v1\nkind: Pod\nmetadata: {name: m}\nspec: {containers: [{name: a, image: b}]}\n" >pod.yaml && exits 1 gpuq submit -p code --code proj pod.yaml && says err "manifest says this itself"
'

no_harm_was_done

test_done
