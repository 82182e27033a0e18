"""Turns a bound launch into its execution: every instruction, for every lane of every warp of every block."""
