"""The places where FLARE itself is altered, all of them, each with its reason.

They are made for nvflare 2.9; a test fails where a version no longer has what is altered here.
"""

from collections.abc import Callable
from typing import Any

#: What FLARE asks of a client from the beginning of a job to its end.
ORDERS = {
    "DeployProcessor",
    "CheckResourceProcessor",
    "CancelResourceProcessor",
    "StartJobProcessor",
    "NotifyJobStatusProcessor",
    "AbortAppProcessor",
    "AbortTaskProcessor",
}


def take_jobs_only() -> None:
    """At a silo: forget all orders but those of a job.

    FLARE trusts its server: what a silo's `authorization.json` forbids is forbidden only if the server says
    that it has to be looked up. So orders that no job needs are not known here at all: to show files of the
    kit, to tell about the machine, to change what is logged, to restart or to end.
    """
    from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors

    known = ClientRequestProcessors.request_processors
    known[:] = [one for one in known if type(one).__name__ in ORDERS]


def listen_only_at(host: str) -> None:
    """At the coordinator: give listeners that FLARE leaves open an address.

    FLARE would listen at all addresses of the machine, unless the one of its kit is loopback.
    """
    from nvflare.fuel.f3.drivers.aio_http_driver import AioHttpDriver

    listen: Callable[[Any, Any], None] = AioHttpDriver.listen

    def at_host(driver: Any, connector: Any) -> None:
        connector.params["host"] = connector.params["host"] or host
        listen(driver, connector)

    AioHttpDriver.listen = at_host


def send_bytes_only() -> None:
    """At both ends of a job: skip the set-up for tensors.

    Only bytes travel here, and FLARE would import torch, which takes seconds.
    """
    from nvflare.collab.runtime import controller, executor

    for module in (controller, executor):
        module.optional_import = lambda **_: (None, False)
