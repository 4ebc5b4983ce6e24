"""Completeness by other people's lists, judged by ptxas and by check.

Forms come from others' tables, tests, grammars and kernels. Each is taken from a local clone of its repository,
given legal operands, and put to ptxas and to `ptxgen.check` on several targets. Reported: what ptxas accepts and
check refuses, the reverse, and crashes; the same for mutations of each form. Nothing of the repositories is kept.
"""
