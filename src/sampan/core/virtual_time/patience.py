"""How long virtual time waits for the clients outside.

Job: the figures, apart from the loop: a test that only names them loads no event loop.
"""

PATIENCE_SECONDS = 10.0
ARRIVAL_SECONDS = 30.0  # of those who are expected by name
ANYBODY = ""
