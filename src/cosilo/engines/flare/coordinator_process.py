"""The process of the coordinator: FLARE's server, which listens at the address that its kit is made for.

FLARE would listen at all addresses of the machine, unless that one is loopback.
"""

import sys
from pathlib import Path
from typing import Any

from nvflare.fuel.f3.drivers.aio_http_driver import AioHttpDriver
from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.fed.app.server.server_train import main, parse_arguments

from cosilo.engines.flare.reach import address


def listen_only_at(host: str) -> None:
    """Give listeners that FLARE leaves open an address."""
    listen = AioHttpDriver.listen

    def at_host(driver: Any, connector: Any) -> None:
        connector.params["host"] = connector.params["host"] or host
        listen(driver, connector)

    AioHttpDriver.listen = at_host


if __name__ == "__main__":
    arguments = parse_arguments()
    listen_only_at(address(Path(arguments.workspace))[0])
    sys.exit(MainProcessMonitor.run(main_func=main, run_dir=arguments.workspace, args=arguments))
