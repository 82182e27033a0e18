"""Turns the models into questions that they grade, and kernels with one fault each into exercises that they check."""
