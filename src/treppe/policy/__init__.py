"""Decisions as pure functions: facts, now and a roll of the dice in; a decision out. No clock, no I/O."""
