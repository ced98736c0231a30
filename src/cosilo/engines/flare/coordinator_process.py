"""The process of the coordinator: FLARE's server, which listens at the address that its kit is made for
and lets in the silos that are admitted."""

import sys
from functools import partial
from pathlib import Path

from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.fed.app.server.server_train import main, parse_arguments

from cosilo.engines.flare.admission import admitted
from cosilo.engines.flare.alterations import let_in_only, listen_only_at
from cosilo.engines.flare.reach import address
from cosilo.engines.local.memory import keep_freed_memory

if __name__ == "__main__":
    arguments = parse_arguments()
    kit = Path(arguments.workspace)
    keep_freed_memory()  # all messages pass here
    listen_only_at(address(kit)[0])
    let_in_only(partial(admitted, kit))
    sys.exit(MainProcessMonitor.run(main_func=main, run_dir=arguments.workspace, args=arguments))
