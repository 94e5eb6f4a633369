"""Touchstone from Python: `from touchstone import Client`."""

from cli.client import ApiError, Client, ClientError, UnreachableError

__all__ = ["ApiError", "Client", "ClientError", "UnreachableError"]
