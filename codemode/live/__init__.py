"""A run while this process has it: its turns, its open requests, its output, its events."""
