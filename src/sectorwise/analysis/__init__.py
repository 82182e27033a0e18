"""Turns kernel models into the result that people and programs read."""
