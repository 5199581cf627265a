"""Code mode for Python people."""

__version__ = "0.1.0"
