"""The network, where the address came from a user."""
