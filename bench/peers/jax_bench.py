"""JAX on the workloads of bench/README.md. python jax_bench.py [workload[:mode] ...]"""
import json, sys, time
import numpy as np
import jax, jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name

P = jax.checkpoint_policies
MODES = dict(
    nothing=None, dots=P.dots_saveable, dots_no_batch=P.dots_with_no_batch_dims_saveable,
    names=P.save_only_these_names("attn_out", "ffn_in"))


def emit(workload, mode, **figures):
    print(json.dumps(dict(peer="jax", version=jax.__version__, workload=workload, mode=mode, **figures)), flush=True)


def times(call, n):
    jax.block_until_ready(call())
    taken = []
    for _ in range(n):
        start = time.perf_counter()
        jax.block_until_ready(call())
        taken.append((time.perf_counter() - start) * 1e3)
    return min(taken), sorted(taken)[n // 2]


wanted_mode = ""  # of the workload at hand; empty: all


def measure(workload, mode, fun, *args, n=5):
    if wanted_mode not in ("", mode):
        return
    start = time.perf_counter()
    lowered = jax.jit(fun).lower(*args)
    traced = time.perf_counter()
    compiled = lowered.compile()
    done = time.perf_counter()
    best, median = times(lambda: compiled(*args), n)
    memory = compiled.memory_analysis()
    emit(workload, mode, ms=round(best, 3), ms_median=round(median, 3), trace_s=round(traced - start, 3),
         compile_s=round(done - traced, 3), temp_mib=round(memory.temp_size_in_bytes / 2**20, 3),
         peak_mib=round((memory.temp_size_in_bytes + memory.output_size_in_bytes) / 2**20, 3))


def toy():
    layer = lambda W, x: jnp.sin(W @ x)
    f = lambda W1, W2, W3, x: layer(W3, layer(W2, layer(W1, x))).sum()
    args = jnp.ones((5, 4)), jnp.ones((6, 5)), jnp.ones((7, 6)), jnp.ones(4)
    for mode, fun, n in (("jit", jax.jit(jax.grad(jax.checkpoint(f), argnums=(0, 1, 2, 3))), 5000),
                         ("eager", jax.grad(jax.checkpoint(f), argnums=(0, 1, 2, 3)), 50)):
        jax.block_until_ready(fun(*args))
        best = min(_timed(fun, args, n) for _ in range(5))
        emit("toy", mode, ms=best)


def _timed(fun, args, n):
    start = time.perf_counter()
    for _ in range(n):
        out = fun(*args)
    jax.block_until_ready(out)
    return (time.perf_counter() - start) * 1e3 / n


def mlp(L=16, D=1024, B=256):
    key = jax.random.key(0)
    Ws = [jax.random.normal(jax.random.fold_in(key, i), (D, D)) * (2 / D) ** 0.5 for i in range(L)]
    bs = [jnp.zeros(D) for _ in range(L)]
    x = jax.random.normal(key, (B, D))
    layer = lambda W, b, x: jnp.maximum(x @ W + b, 0.0)

    def step(layer):
        def loss(Ws, bs, x):
            for W, b in zip(Ws, bs):
                x = layer(W, b, x)
            return jnp.mean(x**2)
        return jax.value_and_grad(loss, argnums=(0, 1))

    measure("mlp", "none", step(layer), Ws, bs, x)
    measure("mlp", "nothing", step(jax.checkpoint(layer)), Ws, bs, x)
    measure("mlp", "dots", step(jax.checkpoint(layer, policy=P.dots_saveable)), Ws, bs, x)


def gpt(scan=False, L=8, D=512, H=8, T=256, B=4, V=1024):
    key = jax.random.key(0)
    init = lambda i, *shape: jax.random.normal(jax.random.fold_in(key, i), shape) * 0.02
    block_params = lambda i: dict(
        ln1=jnp.ones(D), ln1b=jnp.zeros(D), wqkv=init(10 * i + 1, D, 3 * D), bqkv=jnp.zeros(3 * D),
        wo=init(10 * i + 2, D, D), bo=jnp.zeros(D), ln2=jnp.ones(D), ln2b=jnp.zeros(D),
        w1=init(10 * i + 3, D, 4 * D), b1=jnp.zeros(4 * D), w2=init(10 * i + 4, 4 * D, D), b2=jnp.zeros(D))
    blocks = [block_params(i) for i in range(L)]
    if scan:
        blocks = jax.tree.map(lambda *leaves: jnp.stack(leaves), *blocks)
    params = dict(emb=init(1000, V, D), pos=init(1001, T, D), lnf=jnp.ones(D), lnfb=jnp.zeros(D), blocks=blocks)
    tokens = jax.random.randint(key, (B, T), 0, V)
    targets = jnp.roll(tokens, -1, 1)
    mask = jnp.tril(jnp.ones((T, T), bool))

    def norm(x, g, b):
        m = x.mean(-1, keepdims=True)
        v = ((x - m) ** 2).mean(-1, keepdims=True)
        return (x - m) * lax.rsqrt(v + 1e-6) * g + b

    def block(p, x):
        qkv = norm(x, p["ln1"], p["ln1b"]) @ p["wqkv"] + p["bqkv"]
        q, k, v = jnp.split(qkv.reshape(B, T, 3 * H, D // H).transpose(0, 2, 1, 3), 3, 1)
        s = jnp.where(mask, (q @ k.swapaxes(-1, -2)) / np.sqrt(D // H), -1e9)
        o = (jax.nn.softmax(s, -1) @ v).transpose(0, 2, 1, 3).reshape(B, T, D)
        x = x + checkpoint_name(o @ p["wo"] + p["bo"], "attn_out")
        h = checkpoint_name(norm(x, p["ln2"], p["ln2b"]) @ p["w1"] + p["b1"], "ffn_in")
        return x + jax.nn.gelu(h) @ p["w2"] + p["b2"]

    def step(block):
        def loss(p):
            x = p["emb"][tokens] + p["pos"]
            if scan:
                x, _ = lax.scan(lambda x, pb: (block(pb, x), None), x, p["blocks"])
            else:
                for pb in p["blocks"]:
                    x = block(pb, x)
            logp = jax.nn.log_softmax(norm(x, p["lnf"], p["lnfb"]) @ p["emb"].T, -1)
            return -jnp.mean(jnp.take_along_axis(logp, targets[..., None], -1))
        return jax.value_and_grad(loss)

    name = "gpt_scan" if scan else "gpt"
    measure(name, "none", step(block), params)
    for mode, policy in MODES.items():
        measure(name, mode, step(jax.checkpoint(block, policy=policy)), params)


def chain(n=64):
    def recursive(funs):
        if len(funs) <= 2:
            return lambda x: funs[0](funs[1](x)) if len(funs) == 2 else funs[0](x)
        first, second = recursive(funs[: len(funs) // 2]), recursive(funs[len(funs) // 2:])
        return lambda x: first(jax.checkpoint(second)(x))

    def plain(x):
        for _ in range(n):
            x = jnp.sin(x)
        return x.sum()

    x = jnp.ones((512, 512))
    rec = recursive([jnp.sin] * n)
    measure("chain", "none", jax.grad(plain), x)
    measure("chain", "recursive", jax.grad(lambda x: rec(x).sum()), x)


def scan1024():
    W = jnp.eye(64) * 0.99
    body = lambda c: jnp.tanh(c @ W) + c

    def step(body):
        return jax.grad(lambda x: lax.scan(lambda c, _: (body(c), None), x, None, length=1024)[0].sum())

    measure("scan1024", "none", step(body), jnp.ones((64, 64)))
    measure("scan1024", "remat", step(jax.checkpoint(body)), jnp.ones((64, 64)))


def deep():
    layer = lambda W, x: jnp.tanh(x @ W)
    for n in (128, 512, 2048):
        Ws, x = [jnp.ones((16, 16)) * 0.01 for _ in range(n)], jnp.ones((4, 16))
        for mode, f in (("none", layer), ("remat", jax.checkpoint(layer))):
            def loss(Ws, x):
                for W in Ws:
                    x = f(W, x)
                return x.sum()
            start = time.perf_counter()
            jax.make_jaxpr(jax.grad(loss))(Ws, x)
            traced = time.perf_counter() - start
            start = time.perf_counter()
            lowered = jax.jit(jax.grad(loss)).lower(Ws, x)
            lower = time.perf_counter() - start
            start = time.perf_counter()
            compiled = lowered.compile()
            done = time.perf_counter() - start
            best, _ = times(lambda: compiled(Ws, x), 20)
            emit(f"deep{n}", mode, trace_s=round(traced, 4), lower_s=round(lower, 4), compile_s=round(done, 4), ms=round(best, 3))


ALL = dict(toy=toy, mlp=mlp, gpt=gpt, gpt_scan=lambda: gpt(scan=True), chain=chain, scan1024=scan1024, deep=deep)
for item in sys.argv[1:] or ALL:
    name, _, wanted_mode = item.partition(":")
    ALL[name]()
