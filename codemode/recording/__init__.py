"""Recordings: the nested calls of runs in a file, how it is written, and a catalog that answers from it."""
