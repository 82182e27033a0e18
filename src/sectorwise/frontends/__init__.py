"""Turns what a person wrote into cubins, one module for each kind of source."""
