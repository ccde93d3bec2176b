"""Loops with a checkpoint budget beside JAX, in the same run and in turns: Equinox's checkpointed while loop, and nested
scans with checkpointed bodies as they are written by hand. python loops_bench.py path/to/bench/loops [n ...]
Milliseconds of the clock, and of the processor: with one thread each (REPRISE_NUM_THREADS=1, taskset) the latter can be compared
beside other programs, too."""
import subprocess, sys, time
import equinox as eqx
import equinox.internal as eqxi
import jax, jax.numpy as jnp
from jax import lax

STEPS, CHECKPOINTS, TURNS = 1024, 32, 3
NESTED_CHECKPOINTS = 2 * CHECKPOINTS  # what nested scans keep: the beginnings of all segments and the states of one


def step(state):
    u, v = state
    around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + (jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)) - 4.0 * u
    faster = v + 0.1 * around - 0.05 * u * u * u
    return u + 0.5 * faster, faster


def cell(w, h):
    return jnp.tanh(h @ w) + h


def energy(state):
    return jnp.sum(state[0] * state[0])


def with_equinox(step, start):
    body = lambda c: (c[0] + 1, step(c[1]))
    first = (jnp.int32(0), start)
    return eqxi.while_loop(lambda c: c[0] < STEPS, body, first, kind="checkpointed", checkpoints=CHECKPOINTS)[1]


def with_nested_scans(step, start):  # 32 segments of 32 steps
    once = lambda c, _: (step(c), None)
    segment = jax.checkpoint(lambda c, _: (lax.scan(jax.checkpoint(once), c, None, length=STEPS // CHECKPOINTS)[0], None))
    return lax.scan(segment, start, None, length=CHECKPOINTS)[0]


LOOPS = {"equinox": with_equinox, "nested scans": with_nested_scans}


def wave_gradient(loop):
    return jax.jit(jax.grad(lambda u: energy(loop(step, (u, jnp.zeros_like(u))))))


def cell_gradient(loop):
    def loss(w):
        h = loop(lambda h: cell(w, h), w * 0.1)
        return jnp.sum(h * h) * 1e-6
    return jax.jit(jax.grad(loss))


def bump(n):
    i = jnp.arange(n, dtype=jnp.float32) / n
    hill = jnp.exp(-40.0 * (i - 0.4) * (i - 0.4))
    return jnp.outer(hill, hill)


def milliseconds(gradient, u):
    start, processor = time.perf_counter(), time.process_time()
    jax.block_until_ready(gradient(u))
    return (time.perf_counter() - start) * 1e3, (time.process_time() - processor) * 1e3


def ours(program, workload, n, kind):
    checkpoints = NESTED_CHECKPOINTS if kind == "scan" else CHECKPOINTS
    call = [program, "once", str(n), str(STEPS), str(checkpoints), kind] + (["cell"] if workload == "cell" else [])
    out = subprocess.run(call, capture_output=True, text=True, check=True)
    clock, processor, total = out.stdout.split()
    return (float(clock), float(processor)), float(total)


def least(a, b):
    return tuple(min(p, q) for p, q in zip(a, b))


def main():
    program, sizes = sys.argv[1], [int(a) for a in sys.argv[2:]] or [32, 64, 128]
    for workload, n in [(w, n) for w in ("cell", "wave") for n in sizes]:
        u = bump(n)
        peers = {name: (cell_gradient if workload == "cell" else wave_gradient)(loop) for name, loop in LOOPS.items()}
        best = {}
        total = {name: float(jnp.sum(jnp.abs(g(u)))) for name, g in peers.items()}  # compiles, too
        for _ in range(TURNS):
            for kind in ("while", "scan"):
                taken, total[kind] = ours(program, workload, n, kind)
                best[kind] = least(best.get(kind, taken), taken)
            for name, gradient in peers.items():
                for _ in range(3):
                    taken = milliseconds(gradient, u)
                    best[name] = least(best.get(name, taken), taken)
        print(f"{workload} {n} x {n}, {STEPS} steps, {CHECKPOINTS} checkpoints, {NESTED_CHECKPOINTS} of scans: " + ", ".join(f"{k} {v[0]:.1f} ms ({v[1]:.1f})" for k, v in best.items()))
        for i, what in enumerate(("clock", "processor")):
            print(f"  {what}: our while / equinox {best['while'][i] / best['equinox'][i]:.2f} x, our scan / nested scans "
                  f"{best['scan'][i] / best['nested scans'][i]:.2f} x")
        print(f"  sums of the gradient {total}", flush=True)


if __name__ == "__main__":
    print(f"jax {jax.__version__}, equinox {eqx.__version__}")
    main()
