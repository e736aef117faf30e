"""The version of this client, which is that of its package."""

VERSION = "0.2.0"
