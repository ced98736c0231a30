"""Which cosilo this is, and which protocol it speaks."""

__version__ = "0.1.0"

#: The version of the messages between coordinator and silos. It changes when they change, and not with every
#: release: a run may continue with another release of the same protocol.
PROTOCOL = 1
