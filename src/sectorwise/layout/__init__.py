"""Turns shapes, strides and swizzles into offsets, in the notation and by the algebra of CuTe."""
