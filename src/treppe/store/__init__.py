"""Where jobs wait: one protocol, one folder per store."""
