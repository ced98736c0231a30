"""What a run would have taken over given links."""
