"""Turns command lines into reports and exit codes."""
