"""Turns cubins into kernels: tables, instructions, scoreboards and source lines."""
