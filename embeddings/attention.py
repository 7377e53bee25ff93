"""Attention for processors whose vector units compute bfloat16: torch's own takes twice as long there.

That goes through the scores in blocks, with each row's largest score and sum so far, and its matrix products are too
small for such a processor. Here the scores of a text are one product, and their powers are taken as they are: hardly a
score is so large that its power does not fit into bfloat16, which has the range of float32. Each row's sum of powers
shows whether one was. Then, where texts are short, and for all that is not the plain attention of an encoder, torch's
is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_NAME = "chunksink_powers"
_SHORTEST = 40
_AT_ONCE = 2**20
"""Scores: so many stay in the processor's cache."""
_SMALLEST, _LARGEST = 1e-24, 1e36
"""Sums of powers that have lost none, or none that counts."""
_HARMLESS = ("dropout", "is_causal", "position_ids", "scaling")


def set_attention(model: Any) -> bool:
    """Whether the model has it now: it must be one that takes attention from elsewhere, and has torch's."""
    try:
        from transformers import AttentionInterface
        from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
    except ImportError:
        return False
    network: Any = getattr(model[0], "model", None)
    taken = getattr(getattr(network, "config", None), "_attn_implementation", None)
    if taken != "sdpa" or not getattr(network, "_supports_attention_backend", False):
        return False
    AttentionInterface.register(_NAME, attend)
    AttentionMaskInterface.register(_NAME, sdpa_mask)
    network.set_attn_implementation(_NAME)
    return True


def attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **said: Any
) -> tuple[Tensor, None]:
    """As transformers calls it, with [batch, head, token, dimension]; gives [batch, token, head, dimension]."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if query.shape == key.shape == value.shape and _is_plain(module, query, mask, said):
        found = attend_by_powers(query, key, value, mask, said.get("scaling"))
        if found is not None:
            return found, None
    result: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, mask, **said)
    return result


def _is_plain(module: Any, query: Tensor, mask: Tensor | None, said: dict[str, Any]) -> bool:
    """Each token of a text sees all of it, and nothing else has a say; the text is long enough."""
    import torch

    if query.dtype != torch.bfloat16 or query.shape[2] < _SHORTEST:
        return False
    if getattr(module, "is_causal", True) or said.get("is_causal") or said.get("dropout") or torch.is_grad_enabled():
        return False
    if any(value is not None for name, value in said.items() if name not in _HARMLESS):
        return False
    return mask is None or (mask.dtype == torch.bool and torch.equal(mask, mask[:, :1, :1].expand_as(mask)))


def attend_by_powers(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float | None = None
) -> Tensor | None:
    """None where a power was lost. Of the mask only the first row is looked at."""
    import torch

    batch, heads, length, width = query.shape
    queries = (query * (width**-0.5 if scaling is None else scaling)).contiguous()
    keys = key.contiguous()
    # What all scores of a row share counts for nothing in the end, and would take their digits.
    keys = (keys - keys.mean(2, keepdim=True)).transpose(-1, -2)
    values = torch.cat([value, value.new_ones((batch, heads, length, 1))], -1)  # the last column sums the powers
    if mask is not None:
        values = values * mask[:, :1, 0, :, None]
    rows = max(1, min(length, _AT_ONCE // (heads * length)))
    scores = query.new_empty((heads, rows, length))
    sums = query.new_empty((batch, heads, length, width + 1))
    for text in range(batch):
        for first in range(0, length, rows):
            some = queries[text, :, first : first + rows]
            powers = torch.bmm(some, keys[text], out=scores[:, : some.shape[1]]).exp_()
            torch.bmm(powers, values[text], out=sums[text, :, first : first + rows])
    total = sums[..., width:]
    if not (total.min() > _SMALLEST and total.max() < _LARGEST and sums.sum().isfinite()):
        return None
    attended = query.new_empty((batch, length, heads, width))
    torch.div(sums[..., :width], total, out=attended.transpose(1, 2))
    return attended
