"""A silo's model as a folder that works without cosilo."""
