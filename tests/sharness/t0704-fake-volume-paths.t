#!/bin/sh
test_description='volumes: /data, /data/, //data and /data/./ are one path, where the innermost rule has its volume'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# mounts ID: path and claim of each volume of its pod
mounts() {
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods" | /usr/bin/python3 -c '
import json, sys
s = [p for p in json.load(sys.stdin)["items"] if p["metadata"]["labels"].get("gpuq.io/job") == sys.argv[1]][0]["spec"]
claims = {v["name"]: v["persistentVolumeClaim"]["claimName"] for v in s["volumes"] if "persistentVolumeClaim" in v}
print(*sorted(m["mountPath"] + "=" + claims[m["name"]] for m in s["containers"][0]["volumeMounts"] if m["name"] in claims))' "$1"
}

# mounted MOUNTS OPTION...: those of a job with these options
mounted() {
	want=$1 && shift && id=$(submit --annotation=gpuq.test/hang=true -c 1 "$@" --wrap true) && job_becomes "$id" RUNNING 60 && test "$(mounts "$id")" = "$want" && gpuq cancel "$id"
}

test_expect_success 'a path in other words at every level' '
	cat >site.yaml <<-END &&
	version: 1
	image: base
	volumes: [{claim: site, path: /data/}, {claim: homes, path: "/home//%u/."}]
	queues:
	- {name: over, volumes: [{claim: queue, path: //data}]}
	- {name: in, parent: over, volumes: [{claim: inner, path: /data/./}, {claim: more, path: /more///}]}
	- {name: none}
	END
	start_fake && start_fake_gpuqd --site "$PWD/site.yaml"
'

test_expect_success 'the job has the innermost at a path, which is printed plainly' '
	home=/home/$(id -un)=homes &&
	mounted "/data=site $home" -p none && mounted "/data=inner $home /more=more" -p in &&
	mounted "/data=own $home" -p none --volume own:/data/ && mounted "/data=own $home /more=more" -p in --volume own:/./data &&
	mounted "/data=site /home/$(id -un)=own" -p none --volume "own:/home/$(id -un)/" &&
	printf "command: [a]\nvolumes: [{claim: own, path: /data//x/}]\n" >job.yaml && gpuq submit --dry-run -o yaml -p none job.yaml >out && says out "path: .?/data/x.?$" &&
	gpuq export >all.yaml && says all.yaml "path: .*/data" && ! grep -E "/data/|//|/more/" all.yaml && gpuq apply -f all.yaml --dry-run >out && cat out && test "$(wc -l <out)" = 1
'

test_expect_success 'twice in a list of a job or of the site is refused with its place' '
	for path in /data /data/ //data /data/./ /./data//.; do
		printf "image: a\ncommand: [b]\nvolumes:\n- {claim: c, path: /data}\n- {claim: d, path: $path}\n" >job.yaml && exits 1 gpuq submit -p none job.yaml &&
		says err "job.yaml:5:[0-9]*: volumes\[1\].path: another volume is mounted at /data already" &&
		printf "#!/bin/sh\n#GPUQ --volume c:/data\n#GPUQ --volume d:$path:ro\n" >job.sh && exits 1 gpuq submit -p none job.sh && says err "job.sh:3:.*--volume.*another volume is mounted at /data already" &&
		exits 1 gpuq submit -p none --volume c:/data --volume "d:$path" --wrap true && says err "another volume is mounted at /data already" &&
		printf "version: 1\nvolumes:\n- {claim: c, path: /data}\n- {claim: c, path: $path}\n" >bad.yaml && test_must_fail gpuq apply -f bad.yaml --dry-run 2>err &&
		says err "bad.yaml:4:[0-9]*: .*path: another volume is mounted there" || { echo "$path"; return 1; }
	done && printf "groups:\n- {name: a, command: [b]}\n- {name: b, command: [b], volumes: [{claim: c, path: /x}, {claim: c, path: /x/}]}\n" >job.yaml && exits 1 gpuq submit --image a -p none job.yaml && says err "job.yaml:3:[0-9]*: groups\[1\].volumes\[1\].path"
'

test_expect_success 'places of the script and the code in other words are refused as well' '
	for path in //gpuq /./gpuq-code /gpuq-steps/. //gpuq/x; do
		exits 1 gpuq submit -p none --volume "own:$path" --wrap true && says err "expected another path" || return 1
	done
'

test_expect_success 'places that the runtime fills, and a file server without a name, are refused' '
	for path in / /proc/ //sys /dev/.; do
		exits 1 gpuq submit -p none --volume "own:$path" --wrap true && says err "other than /proc, /sys and /dev" || return 1
	done && gpuq submit --dry-run -p none --volume own:/dev/shm --wrap true >out &&
	printf "version: 1\nvolumes: [{claim: c, path: /proc}]\n" >bad.yaml && test_must_fail gpuq apply -f bad.yaml --dry-run 2>err && says err "other than /proc" &&
	printf "image: a\ncommand: [b]\nvolumes: [{nfs: {server: \"\", path: /a}, path: /x}]\n" >job.yaml && exits 1 gpuq submit -p none job.yaml && says err "nfs.server to be a host"
'

no_harm_was_done

test_done
