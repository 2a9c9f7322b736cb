#!/usr/bin/env python3
"""The clients of this project beside `async-nats`, `lapin` and the brokers' own tools, by turns, in one run.

Usage: measure.py GAPLESS [--turns N] [--json FILE]     (GAPLESS: the program, built with --release)

Needs nats-server, rabbitmq-server and `cargo build --release` in this folder; with `nats` (of natscli) on the PATH and
PERF_TEST=FOLDER (the jars of com.rabbitmq:perf-test) their tools are measured, too.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).parent
SIZES = [1, 256, 4096]
# (row, messages by system)
COUNTS = {
    ("call", 1): {"nats": 10_000, "rabbitmq": 5_000},
    ("call", 64): {"nats": 100_000, "rabbitmq": 40_000},
    ("one-way", 1): {"nats": 300_000, "rabbitmq": 60_000},
}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port}")


def start_nats(folder):
    port = free_port()
    (folder / "nats.conf").write_text(
        f'host: 127.0.0.1\nport: {port}\nmax_pending: 1GB\nwrite_deadline: "60s"\nping_interval: "1h"\n'
    )
    process = subprocess.Popen(
        ["nats-server", "-c", folder / "nats.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(port)
    return port, process


def start_rabbitmq(folder):
    port, distribution = free_port(), free_port()
    (folder / "enabled_plugins").write_text("[].\n")
    (folder / "env.conf").write_text("")
    (folder / "rabbitmq.conf").write_text(
        "log.console = false\nlog.file.level = error\ndisk_free_limit.absolute = 1MB\ntcp_listen_options.nodelay = true\n"
    )
    environment = os.environ | {
        "HOME": str(folder),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "env.conf"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_NODENAME": f"clients-{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution),
        "ERL_EPMD_PORT": str(free_port()),
    }
    script = next(path for path in ["/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server"] if shutil.which(path))
    process = subprocess.Popen(
        [script], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    wait_for(port)
    time.sleep(3)
    return port, process


def output(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    if done.returncode != 0:
        raise SystemExit(f"{command}: {done.stderr}{done.stdout}")
    return done.stdout + done.stderr


def library(system, port, row, size, explicit):
    kind, in_flight = row
    environment = os.environ | ({"EXPLICIT": "1"} if explicit else {})
    command = [HERE / "target/release/peer-clients", system, f"127.0.0.1:{port}", kind, size, in_flight]
    return float(output([str(word) for word in command + [COUNTS[row][system]]], env=environment))


def own_tool(system, port, row, size):
    """Messages a second of the broker's own tool, or None where it has no such load."""
    kind, in_flight = row
    count = COUNTS[row][system]
    if system == "nats":
        if not shutil.which("nats"):
            return None
        server = ["nats", "-s", f"nats://127.0.0.1:{port}", "bench"]
        load = ["--size", str(size), "--msgs", str(count), "--no-progress"]
        if kind == "call":
            serving = subprocess.Popen(
                server + ["service", "serve", "bench", "--size", str(size), "--no-progress"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(0.5)
            text = output(server + ["service", "request", "bench", "--clients", str(in_flight)] + load)
            serving.kill()
            serving.wait()
            rates = re.findall(r"([\d,]+) msgs/sec", text)
        else:
            reading = subprocess.Popen(
                server + ["sub", "bench"] + load, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            time.sleep(0.5)
            output(server + ["pub", "bench"] + load)
            rates = re.findall(r"([\d,]+) msgs/sec", reading.communicate(timeout=120)[0])
        return max(float(rate.replace(",", "")) for rate in rates)
    jars = os.environ.get("PERF_TEST")
    if not jars or kind == "call":
        return None
    text = output(
        ["java", "-cp", f"{jars}/*", "com.rabbitmq.perf.PerfTest", "--uri", f"amqp://guest:guest@127.0.0.1:{port}/%2f"]
        + ["--size", str(size), "--autoack", "--time", "8", "--queue", f"perf-{size}", "--auto-delete", "false"]
    )
    return float(re.findall(r"receiving rate avg: (\d+) msg/s", text)[-1])


def ours(gapless):
    """Figures of this project's clients, each at the same count."""
    file = pathlib.Path(tempfile.mkdtemp()) / "curve.json"
    sizes = ",".join(map(str, SIZES))
    output(
        [gapless, "bench", "rpc", "curve", "--sizes", sizes, "--samples", "5000", "--turns", "1", "--waiting", "blocking"]
        + ["--systems", "nats,rabbitmq", "--json", str(file)]
    )
    rows = json.loads(file.read_text())["rows"]
    shutil.rmtree(file.parent)
    found = {}
    for row in rows:
        config = row["config"]
        if config["payload_bytes"] not in SIZES or config["connected"] != 1:
            continue
        key = ("one-way", 1) if config["mode"] == "one_way" else ("call", config["in_flight"])
        found[(config["system"], config.get("acknowledgement"), key, config["payload_bytes"])] = row["throughput_per_s"]
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gapless")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    figures = {}

    def add(key, who, rate):
        if rate is not None:
            figures.setdefault(key, {}).setdefault(who, []).append(rate)

    for turn in range(arguments.turns):
        for key, rate in ours(arguments.gapless).items():
            add(key, "ours", rate)
        folder = pathlib.Path(tempfile.mkdtemp())
        for system, start in [("nats", start_nats), ("rabbitmq", start_rabbitmq)]:
            (folder / system).mkdir()
            port, process = start(folder / system)
            try:
                for row in COUNTS:
                    for size in SIZES:
                        for explicit in [False, True] if system == "rabbitmq" else [False]:
                            word = None if system == "nats" else "explicit" if explicit else "automatic"
                            key = (system, word, row, size)
                            add(key, "library", library(system, port, row, size, explicit))
                            if not explicit:
                                add(key, "tool", own_tool(system, port, row, size))
                print(f"turn {turn + 1}: {system} done", flush=True)
            finally:
                if system == "rabbitmq":
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    rows = []
    for (system, acknowledgement, (kind, in_flight), size), rates in sorted(figures.items(), key=str):
        medians = {who: statistics.median(values) for who, values in rates.items()}
        row = {"system": system, "acknowledgement": acknowledgement, "load": kind, "in_flight": in_flight}
        rows.append(row | {"payload_bytes": size, "median_per_s": medians, "turns_per_s": rates})
        cells = [f"{medians.get(who, 0):>12,.0f}" for who in ("ours", "library", "tool")]
        print(f"{system:9}{acknowledgement or '':10}{kind:8}{in_flight:>3}{size:>6}", *cells)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"rows": rows}, indent=1) + "\n")


main()
