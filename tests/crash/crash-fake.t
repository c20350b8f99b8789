#!/bin/sh
# kill -9 of gpuqd at random moments under load, on the fake cluster; prints TAP
if ! [ -x /usr/bin/python3 ]; then
	echo "1..0 # SKIP python3 is not installed"
	exit 77
fi
exec "$(dirname "$0")/crash-loop" --cluster fake
