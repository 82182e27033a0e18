"""Turns statements that circulate in courses and interviews into computed and measured numbers, and a page."""
