# transport.sh - the ways to a daemon that lib.sh can choose: GPUQ_TEST_TRANSPORT is unix (the default), ssh or
# tls. A daemon of a test listens on its socket in any case; this makes $GPUQ_SERVER lead there.
: "${GPUQ_TEST_TRANSPORT:=unix}"

# free_port: one of loopback that is free now
free_port() {
	/usr/bin/python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# Why a sshd of our own cannot run here, or nothing.
no_sshd() {
	sshd=$(PATH=$PATH:/usr/sbin command -v sshd) && command -v ssh-keygen >/dev/null ||
		{ echo "the Debian package openssh-server is not installed"; return; }
	[ "$(id -u)" != 0 ] || mkdir -p -m 755 /run/sshd 2>/dev/null || echo "/run/sshd cannot be made"
}

# start_sshd: on a port of loopback, with keys of its own; $ssh_server is the address of the daemon through
# it. What it lets in has the PATH $ssh_path and the socket $ssh_socket.
ssh_path=$test_build/gpuq:/usr/bin:/bin
ssh_socket=unix:$TMPDIR/s
start_sshd() {
	sshd=$(PATH=$PATH:/usr/sbin command -v sshd) || return 1
	ssh_dir=$TMPDIR/ssh
	[ -d "$ssh_dir" ] || {
		mkdir -p -m 700 "$ssh_dir/bin" &&
		ssh-keygen -q -t ed25519 -N '' -f "$ssh_dir/host" && ssh-keygen -q -t ed25519 -N '' -f "$ssh_dir/id" &&
		cp "$ssh_dir/id.pub" "$ssh_dir/authorized" || return 1
		# The keys and hosts of the test, none of the user's: the program ssh that comes first in PATH.
		printf '#!/bin/sh\nexec "%s" -F "%s" "$@"\n' "$(command -v ssh)" "$ssh_dir/config" >"$ssh_dir/bin/ssh" &&
		chmod 755 "$ssh_dir/bin/ssh" || return 1
		PATH=$ssh_dir/bin:$PATH
	}
	ssh_port=$(free_port) &&
	cat >"$ssh_dir/sshd_config" <<-END &&
	ListenAddress 127.0.0.1
	Port $ssh_port
	HostKey $ssh_dir/host
	PidFile none
	AuthorizedKeysFile $ssh_dir/authorized
	StrictModes no
	UsePAM no
	PasswordAuthentication no
	KbdInteractiveAuthentication no
	PermitRootLogin prohibit-password
	MaxStartups 1000
	SetEnv "PATH=$ssh_path" "GPUQ_SERVER=$ssh_socket" "GPUQ_TEST_TAG=$GPUQ_TEST_TAG"
	END
	cat >"$ssh_dir/config" <<-END &&
	IdentityFile $ssh_dir/id
	IdentitiesOnly yes
	IdentityAgent none
	UserKnownHostsFile $ssh_dir/known
	GlobalKnownHostsFile /dev/null
	StrictHostKeyChecking yes
	END
	printf '[127.0.0.1]:%s %s\n' "$ssh_port" "$(cat "$ssh_dir/host.pub")" >"$ssh_dir/known" || return 1
	"$sshd" -D -e -f "$ssh_dir/sshd_config" </dev/null >>"$ssh_dir/log" 2>&1 3>&- 4>&- 5>&- &
	ssh_pid=$!
	echo "$ssh_pid" >>"$TMPDIR/sshd.pids"
	ssh_server=ssh://$(id -un)@127.0.0.1:$ssh_port
	wait_for 30 sshd_answers || { cat "$ssh_dir/log"; return 1; }
}

sshd_answers() {
	kill -0 "$ssh_pid" && ssh -T -o BatchMode=yes -p "$ssh_port" -- "$(id -un)@127.0.0.1" true
}

# transport_open: before the daemon of the socket starts; $transport_listen is what it listens on besides
transport_listen=
transport_open() {
	case $GPUQ_TEST_TRANSPORT in
	unix) ;;
	tls)
		[ -n "$transport_listen" ] || {
			gpuqd --state "$TMPDIR/tls" --make-cert localhost >"$TMPDIR/pin" 2>&1 || { cat "$TMPDIR/pin"; return 1; }
			transport_listen=tls://127.0.0.1:$(free_port) && printf 'operators: [%s]\n' "$(id -un)" >"$TMPDIR/operators.yaml"
		}
		[ -e state/tls ] || { mkdir -p state && cp -a "$TMPDIR/tls/tls" state/; } || return 1
		GPUQ_SERVER=unix:$gpuqd_socket
		;;
	ssh)
		[ -z "${ssh_pid-}" ] || return 0
		start_sshd && GPUQ_SERVER=$ssh_server
		;;
	*) echo "GPUQ_TEST_TRANSPORT: expected unix, ssh or tls, not $GPUQ_TEST_TRANSPORT"; return 1 ;;
	esac
}

# transport_ready: the daemon answers on its socket. The token is of its own user, for all that there is; a new
# database knows none.
transport_ready() {
	[ "$GPUQ_TEST_TRANSPORT" = tls ] || return 0
	transport_address="$transport_listen?pin=$(sed -n "s/^pin //p" "$TMPDIR/pin")"
	GPUQ_TOKEN_FILE=$TMPDIR/token
	export GPUQ_TOKEN_FILE
	gpuq --server "$transport_address" whoami >"$TMPDIR/whoami" 2>&1 ||
		(umask 077 && gpuq token create --for="$(id -un)" --scope=read,submit,control,session,manage,operate --expires=23h >"$GPUQ_TOKEN_FILE") || return 1
	GPUQ_SERVER=$transport_address
}

# What the transport lacks here: the test skips.
transport_lacks() {
	case $GPUQ_TEST_TRANSPORT in
	ssh) no_sshd ;;
	esac
}
