"""Read, evaluate, print, loop."""
