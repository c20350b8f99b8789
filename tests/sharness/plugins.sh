# plugins.sh - nodes of the real control plane whose devices a plugin hands out; sourced after kube.sh

# plugin KIND NODE [option]...: the kubelet and the plugin of that node; its log is NODE.log, its process id in NODE.pid
plugin() {
	plugin_kind=$1 plugin_node=$2
	shift 2
	: >"$plugin_node.log"
	"$kube_tools/share-plugin" "$TMPDIR/k/admin.kubeconfig" "$plugin_kind" "$plugin_node" "$PWD/$plugin_node.log" "$@" \
		</dev/null >>"$plugin_node.err" 2>&1 3>&- 4>&- 5>&- &
	echo $! >"$plugin_node.pid"
	plugins="${plugins-} $!"
	wait_for 60 grep -q ready "$plugin_node.log"
}

end_plugins() {
	for plugin_pid in ${plugins-}; do kill "$plugin_pid" 2>/dev/null; done
	plugins=
}

# part 'KEYS' [NOTES]: a job of a part of a device that runs until it is cancelled; prints its id
part() {
	fake_job "$1\nannotations: {gpuq.test/start: 3600s, gpuq.test/hang: 'true'${2+, }${2-}}"
}

# noted JOB KEY: an annotation of its pod
noted() {
	kube get "$(the_pod "$1")" | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["metadata"]["annotations"].get(sys.argv[1], "-"))' "$2"
}

# end_plugin NODE: it and the kubelet of that node are gone
end_plugin() {
	kill "$(cat "$1.pid")"
}

# note_node NODE KEY TEXT: an annotation of it, none for ""
note_node() {
	kube patch "nodes/$1" "$(/usr/bin/python3 -c 'import json, sys; print(json.dumps({"metadata": {"annotations": {sys.argv[1]: sys.argv[2] or None}}}))' "$2" "$3")" >/dev/null
}

# node_note NODE KEY: that annotation; - = none
node_note() {
	kube get "nodes/$1" | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["metadata"].get("annotations", {}).get(sys.argv[1], "-"))' "$2"
}

# node_has NODE JSONPATH VALUE: as gpuqd knows it
node_has() {
	node_has_got=$(gpuq nodes --json | grep "\"name\":\"$1\"" | json "$2")
	[ "$node_has_got" = "$3" ] || { echo "$2 of $1 is '$node_has_got', not '$3'"; return 1; }
}

# limits JOB: what the first container of its pod asks for
limits() {
	kube raw GET "$(the_pod "$1")" 2>/dev/null | json spec.containers.0.resources.limits
}

# api METHOD PATH [BODY]: below /api/v1, as the administrator; what it answers is one line
api() {
	case $1 in
	PATCH) kube patch "/api/v1$2" "$3" ;;
	*) kube raw "$1" "/api/v1$2" ${3+"$3"} 2>/dev/null ;;
	esac
}
