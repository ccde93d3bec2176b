"""Makes nnx_layers.json with the real Flax (0.12.8): parameters and outputs of NNX layers for given seeds."""
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

CASES = {}


def dump(a):
    a = np.asarray(a, dtype=np.float32)
    return {"shape": list(a.shape), "bits": [f"0x{b:08x}" for b in a.view(np.uint32).ravel()]}


def numbers(*shape):
    """The same everywhere: 1.7 sin(1.3 i + 0.5)."""
    i = np.arange(int(np.prod(shape)), dtype=np.float64)
    return jnp.asarray((1.7 * np.sin(1.3 * i + 0.5)).astype(np.float32).reshape(shape))


def params(module):
    flat = nnx.to_flat_state(nnx.state(module, nnx.Any(nnx.Param, nnx.BatchStat)))
    return {"/".join(map(str, path)): dump(v[...]) for path, v in flat}


def case(name, module, *calls):
    """Each call is (arguments, keyword arguments); state goes on from call to call."""
    before = params(module)
    outs = [dump(module(*args, **kwargs)) for args, kwargs in calls]
    CASES[name] = {"params": before, "outs": outs, "after": params(module)}


R = nnx.Rngs
case("linear_no_bias", nnx.Linear(3, 4, use_bias=False, rngs=R(1)), ((numbers(2, 3),), {}))
case("linear_bf16", nnx.Linear(3, 4, dtype=jnp.bfloat16, rngs=R(1)), ((numbers(2, 3),), {}))
case("linear_general", nnx.LinearGeneral((3, 4), (2, 5), axis=(-2, -1), rngs=R(2)), ((numbers(2, 3, 4),), {}))
case("linear_general_batch", nnx.LinearGeneral(4, 5, batch_axis={0: 2}, rngs=R(2)), ((numbers(2, 3, 4),), {}))
case("einsum", nnx.Einsum("abc,cde->abde", (4, 2, 3), (2, 3), rngs=R(3)), ((numbers(2, 5, 4),), {}))
case("einsum_ellipsis", nnx.Einsum("...a,ab->...b", (4, 3), (3,), rngs=R(3)), ((numbers(2, 5, 4),), {}))
case("embed", nnx.Embed(5, 3, rngs=R(4)), ((jnp.array([[0, 4], [-1, 2]]),), {}))
case("conv_same", nnx.Conv(2, 3, (3, 3), rngs=R(5)), ((numbers(2, 5, 4, 2),), {}))
case("conv_valid_strides", nnx.Conv(2, 3, (3,), strides=2, padding="VALID", rngs=R(5)), ((numbers(2, 7, 2),), {}))
case("conv_groups_dilation", nnx.Conv(4, 4, (2, 2), feature_group_count=2, kernel_dilation=2, use_bias=False,
                                      padding=[(1, 0), (2, 1)], rngs=R(6)), ((numbers(1, 5, 5, 4),), {}))
case("conv_circular", nnx.Conv(2, 3, (3,), padding="CIRCULAR", rngs=R(5)), ((numbers(2, 5, 2),), {}))
case("conv_causal", nnx.Conv(2, 3, (3,), padding="CAUSAL", rngs=R(5)), ((numbers(5, 2),), {}))
case("layer_norm", nnx.LayerNorm(4, rngs=R(7)), ((numbers(3, 4),), {}))
case("layer_norm_slow", nnx.LayerNorm(4, epsilon=1e-3, use_bias=False, use_fast_variance=False, rngs=R(7)),
     ((numbers(3, 4),), {}))
case("rms_norm", nnx.RMSNorm(4, rngs=R(7)), ((numbers(3, 4),), {}))
case("group_norm", nnx.GroupNorm(6, num_groups=3, rngs=R(7)), ((numbers(2, 4, 6),), {}))
case("group_norm_size", nnx.GroupNorm(6, num_groups=None, group_size=3, rngs=R(7)), ((numbers(2, 4, 6),), {}))
case("batch_norm", nnx.BatchNorm(4, momentum=0.9, rngs=R(8)), ((numbers(5, 4),), {}),
     ((numbers(2, 3, 4),), {}), ((numbers(5, 4),), {"use_running_average": True}))
case("batch_norm_mask", nnx.BatchNorm(4, rngs=R(8)),
     ((numbers(3, 4),), {"mask": jnp.array([[True], [False], [True]])}))
case("dropout", nnx.Dropout(0.3, rngs=R(9)), ((numbers(4, 5),), {}), ((numbers(4, 5),), {}),
     ((numbers(4, 5),), {"deterministic": True}), ((numbers(4, 5),), {}))
case("dropout_broadcast", nnx.Dropout(0.5, broadcast_dims=(0,), rngs=R(dropout=2)), ((numbers(4, 5),), {}))
case("attention", nnx.MultiHeadAttention(2, 4, decode=False, rngs=R(10)), ((numbers(2, 3, 4),), {}),
     ((numbers(2, 3, 4),), {"is_causal": True}), ((numbers(2, 3, 4), numbers(2, 5, 4)), {}),
     ((numbers(2, 3, 4),), {"mask": nnx.make_causal_mask(jnp.ones((2, 3)))}))
case("attention_options", nnx.MultiHeadAttention(4, 6, qkv_features=8, out_features=5, num_kv_heads=2,
                                                 normalize_qk=True, use_bias=False, decode=False, rngs=R(10)),
     ((numbers(2, 3, 6),), {}))
case("attention_batches", nnx.MultiHeadAttention(2, 4, decode=False, rngs=R(10)), ((numbers(2, 2, 3, 4),), {}))
case("attention_dropout", nnx.MultiHeadAttention(2, 4, dropout_rate=0.4, deterministic=False, decode=False, rngs=R(11)),
     ((numbers(2, 3, 4),), {}), ((numbers(2, 3, 4),), {}), ((numbers(2, 3, 4),), {"deterministic": True}))
decoder = nnx.MultiHeadAttention(2, 4, decode=True, rngs=R(12))
decoder.init_cache((2, 3, 4))
case("attention_decode", decoder, *[((numbers(2, 3, 4)[:, i:i + 1],), {}) for i in range(3)])
r = R(13)
case("sequential", nnx.Sequential(nnx.Linear(3, 4, rngs=r), jax.nn.relu, nnx.Linear(4, 2, rngs=r)),
     ((numbers(2, 3),), {}))

model = nnx.Linear(3, 2, rngs=R(14))
optimizer = nnx.Optimizer(model, optax.adamw(0.1), wrt=nnx.Param)
for _ in range(3):
    grads = nnx.grad(lambda m: jnp.sum(jnp.square(m(numbers(4, 3)))))(model)
    optimizer.update(model, grads)
CASES["optimizer_adamw_3_steps"] = {"params": params(model)}

json.dump(CASES, sys.stdout, indent=0)
