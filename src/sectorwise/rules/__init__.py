"""Turns kernel models into findings, one module a rule."""
