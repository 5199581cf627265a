"""Everything that speaks MCP. Imports `core` only."""
