#!/bin/sh
# Every rule and every fault of the fake apiserver. The program is the build's.
command -v python3 >/dev/null || {
	echo "python3 is not installed"
	exit 77
}
exec python3 "$(dirname "$0")/selftest.py" "${top_builddir:-.}/tests/fakekube/fakekube"
