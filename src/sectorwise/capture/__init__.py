"""Turns Python code that launches kernels into analyses of these launches, in the place of running them."""
