"""Slow, plain reference implementations that the tests hold the fast code against."""
