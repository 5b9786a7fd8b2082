"""What stops `sampan` from starting: one sentence that says what to do."""


class CannotStart(Exception):
    """Shown to the user as it is, without a traceback."""
