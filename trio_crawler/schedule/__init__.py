"""The schedule: which job is next, at which host, and when."""
