"""Provides torch's Adam without loading torch's compiler."""

from __future__ import annotations

import inspect

import torch

_Adam = torch.optim.Adam


class Adam(_Adam):
    """Works like `torch.optim.Adam`, but lacks the decorators that prepare it for torch's compiler.

    At its first use, a decorated method loads the compiler, which takes a second and 70 MB per
    process. This program does not use the compiler.
    """

    add_param_group = inspect.unwrap(_Adam.add_param_group)
    load_state_dict = inspect.unwrap(_Adam.load_state_dict)
    state_dict = inspect.unwrap(_Adam.state_dict)
    zero_grad = inspect.unwrap(_Adam.zero_grad)
    step = torch.no_grad()(inspect.unwrap(_Adam.step))
