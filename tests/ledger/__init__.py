"""The sentences of the contract, a file for each area; `tests/requirements.py` gathers them."""
