"""How work comes in: webhooks over HTTP, and jobs within the caller's own transaction.

A webhook's way: ``guard`` (limits) → ``webhook`` (answers) → ``signature`` (is it really the sender?) →
``sender`` (what it means: event, jobs) → the store → the answer.
"""
