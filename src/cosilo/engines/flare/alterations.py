"""The places where FLARE itself is altered, all of them, each with its reason.

They are made for nvflare 2.9; a test fails where a version no longer has what is altered here.
"""

from collections.abc import Callable, Mapping
from typing import Any

from cosilo.engines.flare.certificates import digest

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


def let_in_only(admitted: Callable[[], Mapping[str, str]]) -> None:
    """At the coordinator: let silos in by a list of certificates, which may change at any time.

    FLARE lets everybody in whose certificate is signed, for as long as the certificate holds. `admitted` has
    the digest of the one certificate that each silo may come with. Silos are held against it when they
    register, and at every sign of life, by name and by what they registered with.
    """
    from nvflare.apis.fl_constant import FLContextKey
    from nvflare.fuel.f3.cellnet.defs import IdentityChallengeKey
    from nvflare.private.defs import CellMessageHeaderKeys
    from nvflare.private.fed.server.client_manager import ClientManager

    authenticated, heartbeat = ClientManager.authenticated_client, ClientManager.heartbeat
    came_with: dict[str, str] = {}

    def refuse(context: Any, name: str) -> None:
        text = f"silo {name!r} is not admitted, or not with this certificate"
        context.set_prop(FLContextKey.UNAUTHENTICATED, text, sticky=False)

    def come_in(manager: Any, request: Any, context: Any, kind: Any) -> Any:
        name = request.get_header(CellMessageHeaderKeys.CLIENT_NAME)
        try:
            shown = digest(request.payload.get(IdentityChallengeKey.CERT))
        except Exception:  # whatever somebody sends where a certificate is expected
            shown = ""
        if not shown or admitted().get(name) != shown:
            return refuse(context, name)
        client = authenticated(manager, request, context, kind)
        if client is not None:
            came_with[client.token] = shown
        return client

    def still_there(manager: Any, token: str, name: str, place: str, context: Any) -> bool:
        wanted = admitted().get(name)
        if wanted is None or came_with.get(token, wanted) != wanted:  # unknown: from before a restart
            if token in manager.clients:
                manager.remove_client(token)
            refuse(context, name)
            return False
        return bool(heartbeat(manager, token, name, place, context))

    ClientManager.authenticated_client, ClientManager.heartbeat = come_in, still_there


def send_bytes_only() -> None:
    """At both ends of a job: skip the set-up for tensors.

    Only bytes travel here, and FLARE would import torch, which takes seconds.
    """
    from nvflare.collab.runtime import controller, executor

    for module in (controller, executor):
        module.optional_import = lambda **_: (None, False)


def tell_no_contents() -> None:
    """At both ends of a job: messages are not written out for a log that nobody reads.

    FLARE makes a text of every message that comes, all of it, before it asks whether debugging is on: of
    10 MB that took some 70 ms, as samples of a silo's process say.
    """
    from nvflare.fuel.utils.buffer_list import ConsumableBufferList

    def in_short(buffers: Any) -> str:
        return f"{sum(map(len, buffers))} bytes"

    ConsumableBufferList.__repr__ = in_short
