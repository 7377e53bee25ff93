"""What can be configured, and which source of a setting wins."""
