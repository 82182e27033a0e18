"""Turns launch notation, source comments and launch files into launch configurations."""
