"""Fitted objects on disk, without pickle."""
