"""Which of torch's operators a policy file may use: those that compute numbers from numbers.

The list is what makes a file safe to run. torch registers others under the same roof that write files (``aten::save``),
map them into memory (``aten::from_file``) or trust indices and sizes unseen (``aten::_unsafe_index``, ``aten::lstm``).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import torch

from manikin.compat.torch import BATCH_NORM, aten_operator
from manikin.errors import DataError

__all__ = ["OPERATORS", "SIZES", "operator_named"]

OPERATORS = frozenset(
    # elementwise
    "abs absolute acos acosh add addcdiv addcmul arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan"
    " atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil celu clamp clamp_max clamp_min clip copysign cos"
    " cosh div divide elu eq erf erfc exp exp2 expm1 fix float_power floor floor_divide fmod frac ge gelu glu greater"
    " greater_equal gt hardshrink hardsigmoid hardswish hardtanh heaviside isclose isfinite isinf isnan le leaky_relu"
    " lerp less less_equal log log10 log1p log2 log_sigmoid logaddexp logical_and logical_not logical_or logical_xor"
    " logit lt masked_fill maximum minimum mish mul multiply nan_to_num ne neg negative not_equal pow prelu reciprocal"
    " relu relu6 remainder round rsqrt rsub selu sigmoid sign silu sin sinc sinh softplus softshrink sqrt square"
    " sub subtract tan tanh threshold true_divide trunc where xlogy"
    # sums and choices over dimensions
    " all amax amin any argmax argmin argsort cross cumprod cumsum linalg_norm linalg_vector_norm log_softmax"
    " logsumexp max mean min norm prod softmax sort std std_mean sum topk var var_mean _log_softmax _safe_softmax"
    " _softmax"
    # matrices
    " addmm addmv baddbmm bilinear bmm cdist chain_matmul dot einsum inner linalg_cross linalg_matmul linear matmul mm"
    " mv outer scaled_dot_product_attention tensordot"
    # layers
    " _adaptive_avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d"
    " adaptive_max_pool1d adaptive_max_pool2d alpha_dropout avg_pool1d avg_pool2d avg_pool3d batch_norm conv1d conv2d"
    " conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution cosine_similarity dropout embedding"
    " feature_dropout grid_sampler group_norm gru_cell instance_norm layer_norm lstm_cell max_pool1d"
    " max_pool2d max_pool2d_with_indices max_pool3d native_dropout native_group_norm native_layer_norm rms_norm"
    " rnn_tanh_cell upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d"
    " upsample_nearest2d"
    # shapes and places
    " alias as_strided atleast_1d atleast_2d broadcast_tensors broadcast_to cat chunk clone col2im column_stack concat"
    " concatenate constant_pad_nd contiguous copy detach detach_ diag_embed diagonal expand expand_as fill flatten flip"
    " gather hstack im2col index index_add index_copy index_put index_select lift_fresh_copy masked_select meshgrid"
    " moveaxis movedim narrow nonzero one_hot pad permute pixel_shuffle pixel_unshuffle ravel reflection_pad1d"
    " reflection_pad2d repeat repeat_interleave replication_pad1d replication_pad2d reshape reshape_as roll scatter"
    " scatter_add scatter_reduce select select_scatter slice slice_scatter split split_with_sizes squeeze stack"
    " swapaxes swapdims t take_along_dim tensor_split tile transpose tril triu type_as unbind unflatten unfold"
    " unsqueeze view view_as vstack zero"
    # new tensors, random ones among them
    " arange bernoulli empty empty_like eye full full_like linspace new_empty new_full new_ones new_zeros normal"
    " ones ones_like rand rand_like randint randn randn_like randperm scalar_tensor zeros zeros_like"
    # kinds, sizes and what the exporter asserts of them
    " _assert_scalar _assert_tensor_metadata _to_copy is_floating_point numel size sym_constrain_range_for_size"
    " sym_numel sym_size to".split()
)

SIZES: dict[str, Callable[..., Any]] = {
    f"_operator.{f.__name__}": f
    for f in (
        operator.add,
        operator.sub,
        operator.mul,
        operator.floordiv,
        operator.truediv,
        operator.mod,
        operator.neg,
        operator.eq,
        operator.ne,
        operator.lt,
        operator.le,
        operator.gt,
        operator.ge,
    )
}
"""What a graph with a free batch size computes with sizes."""


def _batch_norm(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor,
    running_var: torch.Tensor,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What batch normalization is exported as, by the operator that looks at the sizes of all that it is given."""
    out = torch.nn.functional.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    return out, input.new_empty(0), input.new_empty(0)


_CHECKED: dict[str, Callable[..., Any]] = {BATCH_NORM: _batch_norm}


def operator_named(target: object) -> Callable[..., Any]:
    """The operator that a graph names, ``torch.ops.aten.linear.default`` or ``_operator.mul``.

    Raises:
        DataError: it is none of those that are run.
    """
    if isinstance(target, str) and target in SIZES | _CHECKED:
        return (SIZES | _CHECKED)[target]
    found = re.fullmatch(r"torch\.ops\.aten\.(\w+)\.(\w+)", target) if isinstance(target, str) else None
    # relu_ is relu in place
    if found is not None and (found[1] in OPERATORS or found[1].removesuffix("_") in OPERATORS):
        chosen = aten_operator(found[1], found[2])
        if chosen is not None:
            return chosen
    raise DataError(
        f"the operator {target!r}, which is not among those that are run (manikin.policy.files.operators); "
        "torch.export.export(...).run_decompositions() writes many in terms of others"
    )
