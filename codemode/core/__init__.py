"""The vocabulary of codemode: values, errors, limits, frames. Standard library only."""
