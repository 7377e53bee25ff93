"""Whether a text is legible on its background, by WCAG 2 (level AA)."""

READABLE = 4.5
"""The least contrast of text of usual size."""


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as a browser computes them, `rgb(r, g, b)`."""

    def luminance(colour: str) -> float:
        parts = [float(part) / 255 for part in colour.partition("(")[2].rstrip(")").split(",")[:3]]
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
