"""Arithmetic that methods share: numpy in, numpy out; knows no silo, no message, no file."""
