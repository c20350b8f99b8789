#!/usr/bin/env python3
"""Every rule and every fault of the fake apiserver, one test each.

usage: selftest.py PATH-TO-fakekube [Class[.test] ...] [unittest options]

Talks HTTP over plain sockets, so that half-open streams, slow bytes and lost
answers can be seen for what they are. Waits for states, never for times.
"""
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from selftest import fake  # noqa: E402
from selftest.test_api import *  # noqa: E402,F401,F403
from selftest.test_faults import *  # noqa: E402,F401,F403
from selftest.test_pods import *  # noqa: E402,F401,F403
from selftest.test_server import *  # noqa: E402,F401,F403

if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(__doc__)
    fake.FAKEKUBE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
