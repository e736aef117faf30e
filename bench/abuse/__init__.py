"""Abuse of a server on loopback; see __main__.py."""
