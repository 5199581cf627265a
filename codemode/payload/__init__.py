"""Requests to model providers: built exactly, checked to be closed, dumped without secrets."""
