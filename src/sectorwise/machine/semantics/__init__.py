"""Turns each opcode, decoded once, into an action over a port: one module a family, one table for all."""
