"""Treppe: a durable job queue and webhook buffer."""
