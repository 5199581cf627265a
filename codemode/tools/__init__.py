"""How a manifest tool runs: python, command, http, scripted, core."""
