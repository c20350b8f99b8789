"""The parts of crash-loop: the processes (host), the load on them (load), the checks afterwards (audit)."""
