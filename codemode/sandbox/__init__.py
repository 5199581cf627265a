"""Everything that runs beside hostile code, in the worker process. Imports `core` only."""
