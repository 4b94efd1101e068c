"""Stage I for laws over a network whose joint states are too many to list."""
