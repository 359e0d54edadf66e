"""Policies behind a websocket: the client, the server, the format on the wire."""

from manikin.moved import old_names

__getattr__ = old_names(__name__)
