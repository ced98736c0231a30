"""Ends the processes of some kits when whoever started this process is gone, however it went.

    python -m cosilo.engines.flare.watchdog KIT …

Its standard input is a pipe that nobody writes to: it ends with the process that holds the other end.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def watch(kits: Sequence[Path]) -> "subprocess.Popen[bytes]":
    """End the processes of these kits when this process ends, also if it is killed."""
    command = [sys.executable, "-m", "cosilo.engines.flare.watchdog", *(str(kit.resolve()) for kit in kits)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def main() -> None:
    """Wait for the end of the other process, then end the kits."""
    from cosilo.engines.flare.processes import stop

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while os.read(0, 1):
        pass
    for kit in sys.argv[1:]:
        stop(Path(kit))


if __name__ == "__main__":
    main()
