"""Records loss and gradients of Hugging Face's Qwen3-MoE on a tiny random model, for tests/train/transformers_ranks_test.cpp.

    pip install torch transformers safetensors
    python tests/golden/make_transformers_golden.py tests/golden/transformers/qwen3_moe.safetensors

Every weight is random, norms too. Tensors: weight.NAME, grad.NAME (fp32, experts of a layer stacked as
[experts, out, in]), tokens [rows, S + 1], loss. The file's metadata holds the versions.
"""
import sys

import torch
import transformers
from safetensors.torch import save_file
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

ROWS, LENGTH = 3, 13


def native(tensors, num_experts):
    """Per-expert or fused expert tensors -> one tensor [experts, out, in] a matrix."""
    out = {}
    for name, value in tensors.items():
        if name.endswith("experts.gate_up_proj"):
            gate, up = value.chunk(2, dim=1)
            out[name.replace("gate_up_proj", "gate_proj.weight")] = gate
            out[name.replace("gate_up_proj", "up_proj.weight")] = up
        elif name.endswith("experts.down_proj"):
            out[name + ".weight"] = value
        elif ".experts.0." in name:
            parts = [tensors[name.replace(".experts.0.", f".experts.{e}.")] for e in range(num_experts)]
            out[name.replace(".experts.0.", ".experts.")] = torch.stack(parts)
        elif ".experts." not in name:
            out[name] = value
    return out


def main(path):
    torch.manual_seed(5)
    config = Qwen3MoeConfig(
        vocab_size=61, hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8,
        norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[1], rms_norm_eps=1e-6, rope_theta=1e4,
        tie_word_embeddings=False, output_router_logits=False, attention_dropout=0.0, max_position_embeddings=64)
    config._experts_implementation = "eager"  # the grouped product knows no double
    model = Qwen3MoeForCausalLM(config)
    model.eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(1 + 0.3 * torch.randn_like(p) if "norm" in name else 0.3 * torch.randn_like(p))
    given = {n: p.detach().clone() for n, p in model.named_parameters()}
    model = model.double()  # the router's softmax stays fp32 inside Transformers
    for name, p in model.named_parameters():  # the oracle must hold what is written to the file
        assert torch.equal(p.detach().float(), given[name]), name
    tokens = torch.randint(0, config.vocab_size, (ROWS, LENGTH + 1))
    logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, config.vocab_size), tokens[:, 1:].reshape(-1))
    loss.backward()
    out = {"tokens": tokens, "loss": loss.detach().reshape(1)}
    for name, value in native(given, config.num_experts).items():
        out["weight." + name] = value.contiguous()
    grads = {n: p.grad.float() for n, p in model.named_parameters()}
    for name, value in native(grads, config.num_experts).items():
        out["grad." + name] = value.contiguous()
    save_file(out, path, metadata={"transformers": transformers.__version__, "torch": torch.__version__})


if __name__ == "__main__":
    main(sys.argv[1])
