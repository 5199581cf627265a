"""Code mode inside a Python program: `CodeMode`, functions as tools, and a double for tests."""
