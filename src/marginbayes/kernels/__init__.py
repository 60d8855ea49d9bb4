"""Compiled loops: arrays and numbers in, arrays out. Nothing outside this folder imports numba.

Modules here are imported at their first use, not at import time, so that a user who never needs one does not
wait for the compiler to load.
"""
