"""The parts of crash-loop: what is started (host), what it is loaded with (load), what must hold after (audit)."""
