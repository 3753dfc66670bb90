"""Hermes Agent: memoryd as its memory provider."""
