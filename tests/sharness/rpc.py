#!/usr/bin/env python3
"""rpc.py SOCKET METHOD JSON: one call to gpuqd; each item and then the reply (when it is not
null) as a line of JSON. An error goes to standard error and ends with 1."""
import json
import os
import socket
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "../unit/cli")]
from fake import Reader, pack  # noqa: E402


def main():
    path, method, params = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    s = socket.socket(socket.AF_UNIX)
    s.connect(path[len("unix:"):] if path.startswith("unix:") else path)
    reader = Reader(s)
    for i, (name, p) in enumerate((("hello", {"proto": [1, 0], "client": "rpc.py"}), (method, params))):
        s.sendall(pack([0, i, name, [p]]))
        while True:
            m = reader.value()
            if m[0] == 1 and m[1] == i:
                break
            if m[0] == 2 and m[1] == "$/item":
                print(json.dumps(m[2][2], sort_keys=True))
                s.sendall(pack([2, "$/credit", [i, 1]]))
        if m[2] is not None:
            print(json.dumps(m[2]), file=sys.stderr)
            return 1
        if i and m[3] is not None:
            print(json.dumps(m[3], sort_keys=True))
    return 0


sys.exit(main())
