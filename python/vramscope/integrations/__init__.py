"""Recorders in the form that trainers call. Each module needs its trainer."""
