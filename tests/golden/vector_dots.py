"""Makes vector_dots.json with the real JAX (0.10.2, CPU): products of vectors and matrices, bit for bit."""
import json
import sys

import jax
import numpy as np

SHAPES = [(1, 1), (1, 5), (2, 2), (3, 2), (12, 2), (40, 2), (4, 4), (5, 1), (32, 1), (33, 1), (100, 1), (7, 8),
          (9, 9), (3, 17), (40, 25), (16, 16), (31, 33), (64, 10), (129, 24), (1, 64), (8, 40), (17, 100)]


def numbers(seed, *shape):
    i = np.arange(int(np.prod(shape)), dtype=np.float64)
    return (1.7 * np.sin(1.3 * i + seed)).astype(np.float32).reshape(shape)


def bits(a):
    return [f"0x{b:08x}" for b in np.asarray(a).view(np.uint32).ravel()]


cases = []
for d, f in SHAPES:
    x, w, g = numbers(0.5, d), numbers(0.25, d, f), numbers(0.75, f)
    y, vjp = jax.vjp(lambda x, w: jax.lax.dot_general(x, w, (((0,), (0,)), ((), ()))), x, w)
    cases.append({"rows": d, "columns": f, "product": bits(y), "gradient": bits(vjp(g)[0])})
json.dump(cases, sys.stdout, indent=0)
