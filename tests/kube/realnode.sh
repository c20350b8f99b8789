# realnode.sh - one real node for a test cluster: kubelet, containerd, runc and a fake GPU plugin
#
# The node lives in namespaces of its own (process ids, mounts, network) whose first process is
# "node" in the list of servers. What the kubelet would leave on a machine (iptables chains, sysctls,
# mounts, a bridge, containers) is made in there and goes with them; the cgroups are below one of our
# own and are removed at the end. Sourced by cluster, whose $dir and settings it uses.

real_name=real1
real_runtime=/run/gpuq-containerd.sock		# in the node's own /run
# The settings that a kubelet wants to change on the machine: it gets files of ours in their places.
real_sysctls='vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1
	kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000'
real_lock=/run/gpuq-test-nodes.lock
# Folders of the machine that kubelet, containerd and CNI have wired in: ours lie over them in there.
real_folders='/var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers'

real_check() {
	[ "$(id -u)" = 0 ] || skip "a real node needs root"
	missing=
	for need in containerd:containerd ctr:containerd runc:runc ip:iproute2 iptables:iptables \
		conntrack:conntrack busybox:busybox-static nsenter:util-linux unshare:util-linux \
		/usr/lib/cni/bridge:containernetworking-plugins; do
		command -v "${need%:*}" >/dev/null || missing="$missing ${need#*:}"
	done
	[ -z "$missing" ] || skip "a real node needs the Debian packages$missing"
	! ldd "$(command -v busybox)" >/dev/null 2>&1 ||
		skip "a real node needs a static busybox (Debian package busybox-static)"
	unshare --mount --net --pid --fork ip link add gpuqtest0 type veth peer name gpuqtest1 2>/dev/null ||
		skip "a real node needs namespaces and veth devices; this machine does not let root make them"
	try=$(mktemp -d)
	mkdir "$try/a" "$try/b" "$try/c" "$try/d"
	unshare --mount mount -t overlay -o "lowerdir=$try/a,upperdir=$try/b,workdir=$try/c" none "$try/d" 2>/dev/null
	overlay=$?
	rm -rf "$try"
	[ $overlay = 0 ] || skip "a real node needs overlayfs mounts in ${TMPDIR:-/tmp}"
	for controller in cpu memory pids; do
		real_has_controller $controller ||
			skip "a real node needs the cgroup controller $controller; this machine does not give it"
	done
}

# Version 2 has one tree whose controllers are handed down; version 1 a tree a controller.
real_cgroup_v2() {
	[ -e /sys/fs/cgroup/cgroup.controllers ]
}

real_has_controller() {
	if real_cgroup_v2; then
		grep -qw "$1" /sys/fs/cgroup/cgroup.subtree_control ||
			echo "+$1" 2>/dev/null >/sys/fs/cgroup/cgroup.subtree_control
	else
		[ -w "/sys/fs/cgroup/$1" ]
	fi
}

# Every folder that is our cgroup in one of the trees.
real_cgroups() {
	if real_cgroup_v2; then
		echo "/sys/fs/cgroup/$1"
	else
		for tree in /sys/fs/cgroup/*/; do
			# Some trees have two names, cpu and cpu,cpuacct.
			[ -L "${tree%/}" ] || ! [ -e "$tree/cgroup.procs" ] || echo "$tree$1"
		done
	fi
}

# Called before the apiserver starts: it listens on the machine's end of the cable to the node, so that
# the node reaches it and nobody outside this machine does.
real_settings() {
	for k in $(seq 1 250); do
		node_net=10.76.$k
		ip -o addr | grep -q " $node_net\." || break
	done
	bind_address=$node_net.1
}

real_inside() {
	nsenter -t "$(proc_pid "$dir" node)" -m -n -p "$@"
}

# As proc_start, in the node's namespaces. nsenter forks there, so the server is its child.
real_proc_start() {
	name=$1
	shift
	inside=$(proc_pid "$dir" node) || die "the node's namespaces are gone"
	setsid nsenter -t "$inside" -m -n -p -- "$@" </dev/null >>"$dir/log/$name.log" 2>&1 9>&- &
	real_record "$name" $!
}

# Wait for the only child of process $2 and keep it as server $1.
real_record() {
	tries=100
	while [ $tries -gt 0 ]; do
		for stat in /proc/[0-9]*/stat; do
			# The name in field 2 may hold blanks; after it come state and parent.
			if [ "$(sed 's/.*) //' "$stat" 2>/dev/null | cut -d' ' -f2)" = "$2" ]; then
				child=${stat#/proc/}
				child=${child%/stat}
				echo "$child $(proc_birth "$child")" >"$dir/run/$1.pid"
				return 0
			fi
		done
		sleep 0.05
		tries=$((tries - 1))
	done
	say "$1 did not start; the end of $dir/log/$1.log:"
	tail -n 5 "$dir/log/$1.log" >&2
	return 1
}

# The first process of the namespaces: sets the node's machine up, then waits for orphans.
real_start_node() {
	mkdir -p "$dir/real"
	# Held by the node's first process; who holds it alone may take the folders away, see real_stop_all.
	exec 8>$real_lock
	flock -s 8
	for folder in $real_folders; do
		mkdir -p "$dir/real$folder"
		[ -d "$folder" ] || { mkdir -p "$folder" && echo "$folder" >>"$dir/real/made"; }
	done
	for setting in $real_sysctls; do
		mkdir -p "$dir/real/sysctl/$(dirname "${setting%=*}")"
		echo "${setting#*=}" >"$dir/real/sysctl/${setting%=*}"
	done
	cat >"$dir/real/init" <<-EOF
		set -e
		mount -t tmpfs tmpfs /run
		for folder in $(echo $real_folders); do
			mount --bind "$dir/real\$folder" "\$folder"
		done
		for setting in $(echo $real_sysctls); do
			[ ! -e "/proc/sys/\${setting%=*}" ] ||
				mount --bind "$dir/real/sysctl/\${setting%=*}" "/proc/sys/\${setting%=*}"
		done
		mount --make-rshared /
		ip link set lo up
		echo ready >"$dir/real/ready"
		while :; do
			sleep 1000 &
			wait
		done
	EOF
	rm -f "$dir/real/ready"
	setsid unshare --mount --net --pid --fork --mount-proc --propagation private \
		sh "$dir/real/init" </dev/null >>"$dir/log/node.log" 2>&1 9>&- &
	real_record node $! || return 1
	exec 8>&-
	if ! wait_for 60 "the node's namespaces" test -e "$dir/real/ready"; then
		tail -n 5 "$dir/log/node.log" >&2
		return 1
	fi
	cable=gq${node_net##*.}
	ip link add "$cable" type veth peer name eth0 netns "$(proc_pid "$dir" node)" || return 1
	ip addr add "$node_net.1/30" dev "$cable" && ip link set "$cable" up || return 1
	real_inside ip addr add "$node_net.2/30" dev eth0 && real_inside ip link set eth0 up
}

real_start_containerd() {
	cat >"$dir/real/containerd.toml" <<-EOF
		version = 2
		root = "$dir/real/containerd"
		state = "/run/gpuq-containerd"
		[grpc]
		  address = "$real_runtime"
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "docker.io/local/pause:1"
		  disable_apparmor = true
		  restrict_oom_score_adj = true
		  [plugins."io.containerd.grpc.v1.cri".containerd]
		    snapshotter = "overlayfs"
		    default_runtime_name = "runc"
		    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		      runtime_type = "io.containerd.runc.v2"
		  [plugins."io.containerd.grpc.v1.cri".cni]
		    bin_dir = "/usr/lib/cni"
		    conf_dir = "$dir/real/net.d"
	EOF
	mkdir -p "$dir/real/net.d"
	cat >"$dir/real/net.d/10-bridge.conflist" <<-EOF
		{"cniVersion": "0.4.0", "name": "gpuq-test", "plugins": [
		 {"type": "bridge", "bridge": "cni0", "isGateway": true,
		  "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24"}]],
		   "routes": [{"dst": "$node_net.0/30"}]}}]}
	EOF
	real_proc_start containerd containerd --config "$dir/real/containerd.toml" || return 1
	wait_for 60 containerd real_inside ctr -a $real_runtime version
}

real_import() {
	"$here/make-image" "$dir/real/image.tar" "$@" &&
		real_inside ctr -a $real_runtime -n k8s.io images import "$dir/real/image.tar" >>"$dir/log/images.log" 2>&1
	status=$?
	rm -f "$dir/real/image.tar"
	[ $status = 0 ] || say "importing the image $1 failed: $(tail -n 1 "$dir/log/images.log")"
	return $status
}

real_start_kubelet() {
	if ! [ -e "$dir/pki/kubelet.crt" ]; then
		sign_client "$dir/pki" kubelet "/O=system:nodes/CN=system:node:$real_name"
		write_kubeconfig "$dir/pki/kubelet.kubeconfig" "$server" "$dir/pki" kubelet
	fi
	real_cgroups "$real_cgroup" | while read -r folder; do
		mkdir -p "$folder"
		# A new cpuset of version 1 has no processors and no memory, and takes no process.
		for share in cpuset.cpus cpuset.mems; do
			if [ -e "$folder/$share" ] && ! real_cgroup_v2; then
				cat "$folder/../$share" >"$folder/$share"
			fi
		done
	done
	# No names of the world; those of pods are there where a test runs dns in the node's network.
	: >"$dir/real/resolv.conf"
	cat >"$dir/real/kubelet.yaml" <<-EOF
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		address: 0.0.0.0
		authentication:
		  anonymous: {enabled: false}
		  webhook: {enabled: true}
		  x509: {clientCAFile: $dir/pki/ca.crt}
		authorization: {mode: Webhook}
		cgroupDriver: cgroupfs
		clusterDNS: [10.77.0.1]
		clusterDomain: cluster.local
		cgroupRoot: /$real_cgroup
		containerRuntimeEndpoint: unix://$real_runtime
		evictionHard: {memory.available: 100Mi}
		failCgroupV1: false
		failSwapOn: false
		nodeStatusUpdateFrequency: 5s
		oomScoreAdj: 0
		resolvConf: $dir/real/resolv.conf
		shutdownGracePeriod: 0s
	EOF
	real_proc_start kubelet "$(kube_tool kubelet)" --kubeconfig="$dir/pki/kubelet.kubeconfig" \
		--config="$dir/real/kubelet.yaml" --root-dir=/var/lib/kubelet --cert-dir="$dir/pki/kubelet" \
		--hostname-override=$real_name --node-ip="$node_net.2" \
		"--node-labels=nvidia.com/gpu.present=true,nvidia.com/gpu.count=$real_gpus,nvidia.com/gpu.product=Fake-GPU,nvidia.com/gpu.memory=16384"
}

# Numbers of GPUs in real/unhealthy are reported unhealthy.
real_start_gpuplugin() {
	real_proc_start gpuplugin "$(kube_tool gpuplugin)" -count "$real_gpus" -unhealthy "$dir/real/unhealthy"
}

# A driver for devices as objects; the claims that it has prepared stand in real/prepared.
real_start_dradriver() {
	real_proc_start dradriver "$(kube_tool dradriver)" -node $real_name -count "$real_dra" -state "$dir/real/prepared" \
		-server "$server" -ca "$dir/pki/ca.crt" -cert "$dir/pki/admin.crt" -key "$dir/pki/admin.key"
}

# A second resource, example.com/nic, where it was asked for.
real_start_nicplugin() {
	real_proc_start nicplugin "$(kube_tool gpuplugin)" -resource example.com/nic -count "$real_nics" \
		-unhealthy "$dir/real/unhealthy-nics"
}

real_start() {
	"real_start_$1"
}

real_node_ready() {
	[ "$(kube get nodes/$real_name 'status.conditions[type=Ready].status,status.allocatable.[nvidia.com/gpu],spec.taints')" = \
		"$(printf 'True\t%s\t' "$real_gpus")" ] &&
		{ [ "$real_nics" = 0 ] || [ "$(kube get nodes/$real_name 'status.allocatable.[example.com/nic]')" = "$real_nics" ]; }
}

real_start_all() {
	busybox=$(command -v busybox)
	real_start_containerd &&
		real_import docker.io/local/pause:1 "$busybox" /bin/busybox sleep 2147483647 &&
		real_import docker.io/local/busybox:1 "$busybox" &&
		real_start_kubelet && real_start_gpuplugin && { [ "$real_nics" = 0 ] || real_start_nicplugin; } &&
		{ [ "$real_dra" = 0 ] || real_start_dradriver; } &&
		wait_for 90 "the node $real_name, ready with $real_gpus GPUs" real_node_ready
}

# Killing the first process of the namespaces kills all others there; what must be undone outside them
# is the cgroups and the folders that were made to be mounted over.
real_stop_all() {
	# While there is an apiserver, let the containers end as they would.
	if proc_pid "$dir" kubelet >/dev/null && api_ready; then
		kube list "pods?fieldSelector=spec.nodeName%3D$real_name" metadata.namespace,metadata.name |
			while read -r namespace pod; do
				kube delete "$namespace/pods/$pod" --grace 1
			done
		wait_for 60 "the end of the pods of $real_name" real_no_pods
	fi
	for name in dradriver nicplugin gpuplugin kubelet containerd; do
		proc_stop "$dir" $name 5
	done
	if first=$(proc_pid "$dir" node); then
		kill -KILL "$first"
		wait_for 60 "the end of the node's processes" real_node_gone
	fi
	rm -f "$dir/run/node.pid"
	real_cgroups "$real_cgroup" | while read -r folder; do
		if [ -d "$folder" ]; then
			find "$folder" -depth -type d -exec rmdir {} \; 2>/dev/null
			[ ! -d "$folder" ] || say "the cgroup $folder cannot be removed"
		fi
	done
	# Taking away a folder that another node has mounted over would take its mount away too.
	if [ -r "$dir/real/made" ] && flock -n -x $real_lock true; then
		while read -r folder; do
			rmdir "$folder" 2>/dev/null
		done <"$dir/real/made"
	fi
	rm -rf "$dir/real/containerd"
}

real_no_pods() {
	[ -z "$(kube list "pods?fieldSelector=spec.nodeName%3D$real_name" metadata.name)" ]
}

real_node_gone() {
	! proc_pid "$dir" node
}
