"""The process of a silo: FLARE's client, which takes jobs from the coordinator and no other orders.

FLARE trusts its server: what a silo's `authorization.json` forbids is forbidden only if the server says that
it has to be looked up. So orders that no job needs are not known here at all: to show files of the kit, to
tell about the machine, to change what is logged, to restart or to end.
"""

import sys

from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.fed.app.client.client_train import main, parse_arguments
from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors

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
    """Forget all other orders."""
    known = ClientRequestProcessors.request_processors
    known[:] = [one for one in known if type(one).__name__ in ORDERS]


if __name__ == "__main__":
    take_jobs_only()
    arguments = parse_arguments()
    sys.exit(MainProcessMonitor.run(main_func=main, run_dir=arguments.workspace, args=arguments))
