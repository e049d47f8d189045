#!/usr/bin/env python3
"""Writes python.safetensors beside this script with the format's own library (pip install safetensors torch).

Values are simple enough for the test to state them: element i of a tensor is i - 3 (BOOL: i is odd; U8: i).
"""
import pathlib

import torch
from safetensors.torch import save_file


def minus_three(dtype, *shape):
    n = torch.Size(shape).numel()
    return (torch.arange(n) - 3).to(dtype).reshape(shape)


tensors = {
    "double": minus_three(torch.float64, 2, 3),
    "model.layers.0.weight": minus_three(torch.float32, 3, 5),
    "bf16": minus_three(torch.bfloat16, 7),
    "half": minus_three(torch.float16, 2, 2),
    "long": minus_three(torch.int64, 3),
    "int": minus_three(torch.int32),
    "short": minus_three(torch.int16, 5),
    "char": minus_three(torch.int8, 3),
    "byte": torch.arange(3, dtype=torch.uint8),
    "bool": torch.arange(4) % 2 == 1,
    "empty": minus_three(torch.float32, 0, 4),
    'na\u00efve "name"\n': minus_three(torch.float32, 1),
}
save_file(tensors, pathlib.Path(__file__).with_name("python.safetensors"),
          {"format": "pt", "written by": "Python"})
