"""Values to rich renderables; one file for each value."""
