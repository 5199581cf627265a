"""Smoke checks: cells with what is expected of them, run in parallel, compared, reported."""
