"""Turns findings into changes of the source that are compiled, executed and shown only where nothing else changes."""
