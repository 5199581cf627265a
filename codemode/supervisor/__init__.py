"""The worker pool: spawn, deadline, kill, crash contract. Nothing here knows what a frame asks for."""
