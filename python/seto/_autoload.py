"""The entry point that `import torch` loads. It registers the backend "seto"."""


def load() -> None:
    """``import seto.torch`` may itself have begun to import torch. Then it registers the rest when torch is complete."""
    import seto.torch  # noqa: F401
