"""PyTorch on the workloads of bench/README.md. python torch_bench.py [workload[:mode] ...] [--compile]

With --compile only what torch.compile makes of gpt with fused attention."""
import functools, json, math, sys, time
import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

torch.manual_seed(0)
COMPILE = "--compile" in sys.argv


def emit(workload, mode, **figures):
    print(json.dumps(dict(peer="torch", version=torch.__version__, workload=workload, mode=mode, **figures)), flush=True)


def peak_mib(step, params):
    for p in params:  # the old gradients must not count as room
        p.grad = None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        step()
    live = peak = 0
    events = [e for e in prof.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return peak / 2**20


wanted_mode = ""  # of the workload at hand; empty: all


def measure(workload, mode, step, params, n=5, compiled=False):
    if wanted_mode not in ("", mode.removesuffix("_sdpa")):
        return
    start = time.perf_counter()
    step()
    first = time.perf_counter() - start
    step()
    taken = []
    for _ in range(n):
        start = time.perf_counter()
        step()
        taken.append((time.perf_counter() - start) * 1e3)
    emit(workload, mode + ("_compile" if compiled else ""), ms=round(min(taken), 3), ms_median=round(sorted(taken)[n // 2], 3),
         compile_s=round(first, 3), peak_mib=round(peak_mib(step, params), 3))


def save_matmuls(ctx, op, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE if op == torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE


def wrap(fun, mode):
    if mode == "none":
        return fun
    context = {} if mode == "nothing" else dict(
        context_fn=functools.partial(create_selective_checkpoint_contexts, save_matmuls))
    return lambda *args: checkpoint(fun, *args, use_reentrant=False, **context)


def backward_step(loss, params):
    def step():
        for p in params:
            p.grad = None
        loss().backward()
    return step


def toy():
    Ws = [torch.ones(5, 4, requires_grad=True), torch.ones(6, 5, requires_grad=True), torch.ones(7, 6, requires_grad=True)]
    x0 = torch.ones(4, requires_grad=True)

    def f(W1, W2, W3, x):
        for W in (W1, W2, W3):
            x = torch.sin(W @ x)
        return x.sum()

    step = backward_step(lambda: checkpoint(f, *Ws, x0, use_reentrant=False), [*Ws, x0])
    step()
    best = 1e9
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(500):
            step()
        best = min(best, (time.perf_counter() - start) * 1e3 / 500)
    emit("toy", "eager", ms=best)


def mlp(L=16, D=1024, B=256):
    Ws = [(torch.randn(D, D) * (2 / D) ** 0.5).requires_grad_() for _ in range(L)]
    bs = [torch.zeros(D, requires_grad=True) for _ in range(L)]
    x0 = torch.randn(B, D)
    layer = lambda x, W, b: torch.relu(torch.addmm(b, x, W))
    for mode in ("none", "nothing"):
        wrapped = wrap(layer, mode)

        def loss():
            x = x0
            for W, b in zip(Ws, bs):
                x = wrapped(x, W, b)
            return (x**2).mean()

        measure("mlp", mode, backward_step(loss, Ws + bs), Ws + bs)


def gpt(L=8, D=512, H=8, T=256, B=4, V=1024):
    leaf = lambda *shape: (torch.randn(*shape) * 0.02).requires_grad_()
    ones, zeros = (lambda n: torch.ones(n, requires_grad=True)), (lambda n: torch.zeros(n, requires_grad=True))
    blocks = [dict(ln1=ones(D), ln1b=zeros(D), wqkv=leaf(D, 3 * D), bqkv=zeros(3 * D), wo=leaf(D, D), bo=zeros(D), ln2=ones(D),
                   ln2b=zeros(D), w1=leaf(D, 4 * D), b1=zeros(4 * D), w2=leaf(4 * D, D), b2=zeros(D)) for _ in range(L)]
    emb, pos, lnf, lnfb = leaf(V, D), leaf(T, D), ones(D), zeros(D)
    params = [emb, pos, lnf, lnfb] + [p for b in blocks for p in b.values()]
    tokens = torch.randint(0, V, (B, T))
    targets = torch.roll(tokens, -1, 1)
    mask = torch.tril(torch.ones(T, T, dtype=torch.bool))

    def block(x, p, fused):
        qkv = F.layer_norm(x, (D,), p["ln1"], p["ln1b"], 1e-6) @ p["wqkv"] + p["bqkv"]
        q, k, v = qkv.view(B, T, 3 * H, D // H).transpose(1, 2).chunk(3, 1)
        if fused:
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            o = torch.softmax(torch.where(mask, (q @ k.transpose(-1, -2)) / math.sqrt(D // H), -1e9), -1) @ v
        x = x + (o.transpose(1, 2).reshape(B, T, D) @ p["wo"] + p["bo"])
        h = F.layer_norm(x, (D,), p["ln2"], p["ln2b"], 1e-6) @ p["w1"] + p["b1"]
        return x + F.gelu(h, approximate="tanh") @ p["w2"] + p["b2"]

    def run(mode, fused, compiled):
        wrapped = wrap(block, mode)

        def loss():
            x = emb[tokens] + pos
            for p in blocks:
                x = wrapped(x, p, fused)
            logits = F.layer_norm(x, (D,), lnf, lnfb, 1e-6) @ emb.T
            return F.cross_entropy(logits.view(-1, V), targets.view(-1))

        measure("gpt", mode + ("_sdpa" if fused else ""), backward_step(torch.compile(loss) if compiled else loss, params),
                params, compiled=compiled)

    if COMPILE:
        for mode in ("none", "nothing"):
            run(mode, True, True)
        return
    for mode in ("none", "nothing", "dots_no_batch"):
        for fused in (False, True):
            run(mode, fused, False)


ALL = dict(toy=toy, mlp=mlp, gpt=gpt)
for item in [a for a in sys.argv[1:] if not a.startswith("-")] or ALL:
    name, _, wanted_mode = item.partition(":")
    ALL[name]()
