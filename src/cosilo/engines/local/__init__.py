"""All silos on this machine, in this process or in worker processes."""
