"""Where runs outlive their process: the port, its SQLite implementation and one in memory."""
