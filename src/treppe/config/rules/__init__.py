"""The rules of ``check``, one module per part of the settings; each yields its findings."""
