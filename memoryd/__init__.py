"""memoryd: the durable, non-blocking memory runtime between any agent host and any memory backend."""

__version__ = "0.1.0"
