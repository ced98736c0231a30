"""The process of a silo: FLARE's client, which takes jobs from the coordinator and no other orders."""

import sys

from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.fed.app.client.client_train import main, parse_arguments

from cosilo.engines.flare.alterations import take_jobs_only

if __name__ == "__main__":
    take_jobs_only()
    arguments = parse_arguments()
    sys.exit(MainProcessMonitor.run(main_func=main, run_dir=arguments.workspace, args=arguments))
