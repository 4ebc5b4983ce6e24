"""Races in tensor memory (TMEM)."""
