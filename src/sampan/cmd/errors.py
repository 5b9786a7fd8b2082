"""What stops `sampan` from starting: one sentence that says what to do."""


class CannotStart(Exception):
    """Shown to the user as it is, without a traceback."""


def reason_of(error: Exception) -> str:
    """Of a file that cannot be read or parsed: without the path, which the sentence names, and
    without the numbers and quotations that libraries add."""
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is not None and problem:  # of a YAML reader
        return f"line {mark.line + 1}: {problem}"
    return " ".join(str(error).split())


def sentence_of(error: Exception) -> str:
    """Of a call that failed; where nobody answered, what that mostly means."""
    text = str(error)
    place = text.removeprefix("dial ").partition(": ")[0]
    if "Connect call failed" in text or "Connection refused" in text:
        return f"no API server answers at {place}: does the cluster run? `sampan list` says"
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return (
            f"the server at {place} shows a certificate that the kubeconfig does not trust: it is "
            "another cluster's, or the kubeconfig is an old one"
        )
    return text
