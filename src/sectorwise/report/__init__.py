"""Turns analyses into text: for terminals, and as JSON."""
