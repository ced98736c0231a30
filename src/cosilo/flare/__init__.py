"""Between organisations: a coordinator and silos in processes of their own, on NVIDIA FLARE.

FLARE brings certificates, connections and processes; what travels are cosilo's messages. `kits` makes the
start-up kits, `processes` starts what is in them, `job` is what a run looks like to FLARE, `site` is the
silo's end of it, `server` the coordinator's, `session` is who asks for a run and follows it.
"""
