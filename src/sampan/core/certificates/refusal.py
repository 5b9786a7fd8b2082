"""Why a server's certificates were not accepted.

Job: the exception alone, for those who only tell of it: the rest loads a library.
"""


class CertificateRefused(OSError):
    """The text says why, as Go does."""
