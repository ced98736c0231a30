"""Both ends of an ask: the coordinator's, the silo's boundary, and an institution, which is both."""
