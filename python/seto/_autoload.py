"""What torch's own import loads: it makes "seto" known to torch."""


def load() -> None:
    """That import may be one which ``import seto.torch`` has begun: the rest of it follows when torch is there."""
    import seto.torch  # noqa: F401
