"""What installed packages can serve, in words and as JSON.

Returns rows and documents, prints nothing.
"""

from __future__ import annotations

from ..messages.catalog import Texts
from ..messages.sections import Row
from ..resolve.serving import Serving


def serves_row(serving: Serving, texts: Texts) -> Row:
    """Return the driver and the GPUs that the packages can serve."""
    if serving.release is None:
        return Row(text=texts.label("serves-nothing"), style="red")
    return Row(
        text=texts.label(
            "serves",
            release=serving.release,
            cuda=serving.cuda,
            driver=serving.driver or "?",
            gpus=", ".join(serving.gpus) or texts.label("none"),
        )
    )


def serving_json(serving: Serving) -> dict[str, object]:
    """Return what the packages can serve, as documents have it."""
    document: dict[str, object] = serving._asdict()
    return {
        **document,
        "gpus": list(serving.gpus),
        "consumers": [str(consumer.by) for consumer in serving.consumers],
    }
