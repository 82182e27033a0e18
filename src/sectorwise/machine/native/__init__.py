"""Turns a kernel's instructions into machine code of the host, and a bound launch into its execution by it."""
