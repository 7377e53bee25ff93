"""Attention by powers: near torch's own where it is taken, and torch's own everywhere else."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as of_torch

from chunksink.embeddings import attention
from chunksink.embeddings.attention import attend, attend_by_powers

SCALING = 0.25


class Module:
    is_causal = False
    training = False
    num_key_value_groups = 1


def inputs(batch: int = 3, heads: int = 2, length: int = 50, *, spread: float = 1.0) -> list[Tensor]:
    torch.manual_seed(length)
    shape = (batch, length, heads, 16)
    query, key, value = (torch.randn(shape).transpose(1, 2) for _ in range(3))
    return [(query * spread).bfloat16(), (key * spread).bfloat16(), value.bfloat16()]


def mask_of(lengths: list[int], length: int = 50) -> Tensor:
    seen = torch.arange(length) < torch.tensor(lengths)[:, None]
    return seen[:, None, None, :].expand(-1, 1, length, -1).contiguous()


def exact(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **said: Any) -> Tensor:
    return of_torch(query.float(), key.float(), value.float(), mask, scale=SCALING, **said).transpose(1, 2)


def is_near(found: Tensor, expected: Tensor) -> bool:
    return bool((found.float() - expected).norm() < 0.01 * expected.norm())


@pytest.mark.parametrize("mask", [None, mask_of([50, 41, 1])])
@pytest.mark.parametrize("at_once", [1, 2 * 50 * 7, 2**20])
def test_it_is_near_the_exact_one(mask: Tensor | None, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_AT_ONCE", at_once)
    with torch.inference_mode():
        query, key, value = inputs()
        found = attend_by_powers(query, key, value, mask, SCALING)
        assert found is not None
        assert found.is_contiguous()
        assert is_near(found, exact(query, key, value, mask))
        half = attend_by_powers(query, key, value, mask)
        assert half is not None
        assert is_near(half, of_torch(query.float(), key.float(), value.float(), mask).transpose(1, 2))


@pytest.mark.parametrize("spread", [1.0, 3.0, 6.0, 12.0, 40.0])
def test_powers_that_would_be_lost_are_left_to_torch(spread: float, taken: list[bool]) -> None:
    with torch.inference_mode():
        query, key, value = inputs(spread=spread)
        found, _ = attend(Module(), query, key, value, mask_of([50, 41, 1]), scaling=SCALING)
        torchs = of_torch(query, key, value, mask_of([50, 41, 1]), scale=SCALING).transpose(1, 2)
        expected = exact(query, key, value, mask_of([50, 41, 1]))
    assert (found.float() - expected).norm() < 5 * (torchs.float() - expected).norm() + 0.01 * expected.norm()
    assert taken == [spread < 5]


@pytest.mark.parametrize("offset", [-600.0, -50.0, 20.0, 60.0, 600.0])
@pytest.mark.parametrize("mask", [None, mask_of([50, 41, 1])])
def test_what_all_scores_of_a_row_share_counts_for_nothing(
    offset: float, mask: Tensor | None, taken: list[bool]
) -> None:
    with torch.inference_mode():
        query, key, value = inputs()
        query[..., 0], key[..., 0] = 4.0, offset / 4 / SCALING
        found, _ = attend(Module(), query, key, value, mask, scaling=SCALING)
        assert is_near(found, exact(query, key, value, mask))
    assert taken == [True]


@pytest.mark.parametrize(("large", "values", "fits"), [({7: 60.0, 9: 40.0}, 1.0, True), ({7: 76.0}, 1e7, False)])
def test_a_row_of_large_scores(large: dict[int, float], values: float, fits: bool, taken: list[bool]) -> None:
    """Of two the smaller one's share is what their difference says; values that would not fit are left to torch."""
    with torch.inference_mode():
        query, key, value = inputs()
        query[..., 0], key[..., 0] = 4.0, 0.0
        for place, score in large.items():
            key[:, :, place, 0] = score
        value *= values
        found, _ = attend(Module(), query, key, value, None, scaling=SCALING)
        assert found.isfinite().all()
        assert is_near(found, exact(query, key, value, None))
    assert taken == [fits]


def test_only_the_plain_attention_of_an_encoder_is_taken(taken: list[bool]) -> None:
    class Causal(Module):
        is_causal = True

    by_rows = torch.ones(3, 1, 50, 50, dtype=torch.bool).tril()
    bias = torch.zeros(3, 1, 50, 50, dtype=torch.bfloat16)
    query, key, value = inputs()

    def call(module: object, *given: Tensor | None, **said: Any) -> Tensor:
        found, _ = attend(module, *given, scaling=SCALING, **said)  # type: ignore[arg-type]
        return found.float()

    with torch.inference_mode():
        assert is_near(call(Causal(), query, key, value, None), exact(query, key, value, None, is_causal=True))
        assert is_near(call(Module(), query, key, value, None, is_causal=True), exact(query, key, value, by_rows))
        assert is_near(call(Module(), query, key, value, by_rows), exact(query, key, value, by_rows))
        assert is_near(call(Module(), query, key, value, bias), exact(query, key, value, None))
        short = inputs(length=20)
        assert is_near(call(Module(), *short, None), exact(*short, None))
        wide = torch.cat([value, value], -1)
        assert is_near(call(Module(), query, key, wide, None), exact(query, key, wide, None))
        whole = [part.float() for part in (query, key, value)]
        assert is_near(call(Module(), *whole, None), exact(query, key, value, None))
        assert is_near(call(Module(), query, key, value, None, position_bias=bias), exact(query, key, value, None))
    assert call(Module(), query.requires_grad_(), key, value, None).requires_grad
    assert taken == []
    with torch.inference_mode():
        call(Module(), *inputs(), None, dropout=0.0, encoder_hidden_states=None, position_ids=torch.arange(50))
    assert taken == [True]
