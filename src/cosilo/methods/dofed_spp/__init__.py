"""DoFed-SPP and its parts."""
