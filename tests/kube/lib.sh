# lib.sh - what the scripts of this folder share: messages, where the programs are, processes, ports
# The sourcing script sets $here to this folder.

say() {
	echo "$*" >&2
}

die() {
	say "$(basename "$0"): $*"
	exit 1
}

# This machine cannot do it, which is no failure of what is tested.
skip() {
	say "$(basename "$0"): skipped: $*"
	exit 77
}

# The module that kube-apiserver, kube-controller-manager and kubelet are built from: that of every run, or
# of the minor release that $GPUQ_KUBE_MINOR names.
kube_module() {
	if [ -n "${GPUQ_KUBE_MINOR:-}" ] && [ "$GPUQ_KUBE_MINOR" != "$(minor_of "$here/go/kubernetes")" ]; then
		echo "$here/minors/$GPUQ_KUBE_MINOR"
	else
		echo "$here/go/kubernetes"
	fi
}

# version_of FOLDER, minor_of FOLDER: of the Kubernetes that its go.mod names, v1.36.3 and 1.36
version_of() {
	sed -n 's/.*k8s.io\/kubernetes \(v[0-9.]*\).*/\1/p' "$1/go.mod"
}

minor_of() {
	version_of "$1" | sed 's/^v\([0-9]*\.[0-9]*\)\..*/\1/'
}

kube_version() {
	version_of "$(kube_module)"
}

# The minors that there are, oldest first.
kube_minors() {
	for minors_folder in "$here"/minors/*/ "$here/go/kubernetes"; do
		minor_of "$minors_folder"
	done | sort -V
}

kube_cache() {
	echo "${GPUQ_KUBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuq-kube}"
}

# The folder of the built programs: one for each state of the files that say what is built. Of another
# minor only the programs of Kubernetes are built.
kube_bin() {
	hash=$(cd "$here/go" && cat ./*/go.mod ./*/go.sum ./*/*.go | sha256sum | cut -c1-12)
	echo "$(kube_cache)/$(version_of "$here/go/kubernetes")-$hash"
}

kube_minor_bin() {
	hash=$(cat "$(kube_module)/go.mod" "$(kube_module)/go.sum" | sha256sum | cut -c1-12)
	echo "$(kube_cache)/$(kube_version)-$hash"
}

# The driver for devices as objects has a folder of its own: few tests want it.
kube_dra_bin() {
	hash=$(cd "$here/dra" && cat go.mod go.sum ./*.go | sha256sum | cut -c1-12)
	echo "$(kube_cache)/dra-$hash"
}

# The path of one program, there or not.
kube_tool() {
	if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$1" ]; then
		echo "$KUBEBUILDER_ASSETS/$1"
		return
	fi
	case $1 in
	kube-apiserver | kube-controller-manager | kubelet)
		if [ "$(kube_module)" != "$here/go/kubernetes" ]; then
			echo "$(kube_minor_bin)/$1"
			return
		fi ;;
	dradriver)
		echo "$(kube_dra_bin)/$1"
		return ;;
	esac
	echo "$(kube_bin)/$1"
}

# Instant of birth of process $1 in ticks since boot: tells it from a later one with the same number.
# The name in field 2 may hold blanks, so count after its closing bracket.
proc_birth() {
	sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20
}

# proc_start DIR NAME command...: run a server of the cluster in DIR, log in DIR/log/NAME.log
proc_start() {
	proc_dir=$1 proc_name=$2
	shift 2
	setsid "$@" </dev/null >>"$proc_dir/log/$proc_name.log" 2>&1 9>&- &
	echo "$! $(proc_birth $!)" >"$proc_dir/run/$proc_name.pid"
}

# proc_pid DIR NAME: its process id while it runs
proc_pid() {
	[ -r "$1/run/$2.pid" ] || return 1
	read -r pid birth <"$1/run/$2.pid" || return 1
	[ -n "$birth" ] && [ "$(proc_birth "$pid")" = "$birth" ] || return 1
	[ "$(sed 's/.*) //' "/proc/$pid/stat" | cut -c1)" != Z ] || return 1
	echo "$pid"
}

# proc_stop DIR NAME [SECONDS]: ask it to end, kill it when it has not after 10 seconds. An apiserver
# that still has watchers would wait for them a minute and longer.
proc_stop() {
	stop_pid=$(proc_pid "$1" "$2") || { rm -f "$1/run/$2.pid"; return 0; }
	kill "$stop_pid" 2>/dev/null
	kill -CONT "$stop_pid" 2>/dev/null
	tries=$((${3:-10} * 20))
	while [ $tries -gt 0 ] && proc_pid "$1" "$2" >/dev/null; do
		sleep 0.05
		tries=$((tries - 1))
	done
	if proc_pid "$1" "$2" >/dev/null; then
		kill -KILL "$stop_pid" 2>/dev/null
	fi
	rm -f "$1/run/$2.pid"
}

# wait_for SECONDS WHAT command...: until the command succeeds
wait_for() {
	wait_seconds=$1 wait_what=$2
	shift 2
	wait_until=$(($(date +%s) + wait_seconds))
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt $wait_until ] || { say "$wait_what: not after $wait_seconds s"; return 1; }
		sleep 0.1
	done
}

# free_ports N: that many free TCP ports of the loopback. They lie below the range that the kernel
# takes for outgoing connections, so that a server can be stopped and come back on its port.
free_ports() {
	/usr/bin/python3 - "$1" <<-'EOF'
		import random, socket, sys
		held = []
		while len(held) < int(sys.argv[1]):
		    s = socket.socket()
		    try:
		        s.bind(("127.0.0.1", random.randrange(20000, 32000)))
		        held.append(s)
		    except OSError:
		        s.close()
		print(*(s.getsockname()[1] for s in held))
	EOF
}
