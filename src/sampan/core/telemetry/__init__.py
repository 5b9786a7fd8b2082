"""What a process says of itself beside its metrics: traces of objects, and who holds the loop."""
