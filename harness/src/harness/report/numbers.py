"""Numbers as people read them."""


def number(value: float) -> str:
    """A value with as many digits as a reader can use."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.3g}"
