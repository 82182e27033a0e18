"""Turns layouts, mappings and tiles that are still on paper into what they would cost, and says which is best."""
