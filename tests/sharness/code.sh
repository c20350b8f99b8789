# code.sh - jobs on the fake cluster whose code no ConfigMap takes; sourced after fake.sh
XDG_CACHE_HOME=$PWD/cache && export XDG_CACHE_HOME
grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

api() {
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/default/$1"
}

# init ID EXPR: of the container of its first pod that brings the code; s is the pod's spec, env what it is given, mount
# what it has of the volume
init() {
	api pods | /usr/bin/python3 -c '
import json, sys
s = [p for p in json.load(sys.stdin)["items"] if p["metadata"]["labels"].get("gpuq.io/job") == sys.argv[1]][0]["spec"]
init = s["initContainers"][0]
env = {e["name"]: e.get("value") for e in init.get("env", [])}
mount = ([m for m in init["volumeMounts"] if m["name"] == "gpuq-code-store"] + [None])[0]
print(eval(sys.argv[2]))' "$1" "$2"
}

carried() {
	submit --annotation=gpuq.test/hang=true --code proj "$@" --wrap true
}

# refused LINES WORDS: gpuqd does not take them as code_store
refused() {
	printf "code_store:\n%s\n" "$1" >bad.yaml && test_must_fail gpuqd --config bad.yaml --check 2>err && says err "$2"
}
