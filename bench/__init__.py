"""Benchmarks: measured, printed, never asserted. `python -m bench` prints the table."""
