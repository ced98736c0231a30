"""The process of the coordinator: FLARE's server, which listens at the address that its kit is made for."""

import sys
from pathlib import Path

from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.fed.app.server.server_train import main, parse_arguments

from cosilo.engines.flare.alterations import listen_only_at
from cosilo.engines.flare.reach import address

if __name__ == "__main__":
    arguments = parse_arguments()
    listen_only_at(address(Path(arguments.workspace))[0])
    sys.exit(MainProcessMonitor.run(main_func=main, run_dir=arguments.workspace, args=arguments))
