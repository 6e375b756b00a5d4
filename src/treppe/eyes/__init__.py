"""What people see: figures, alerts and the board."""
