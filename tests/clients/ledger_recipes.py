"""Runs the recipes of docs/ledger-http.md as they stand there, and compares what they print with what the page shows.

Usage: ledger_recipes.py PROGRAM [--without-node]

PROGRAM is the ledger's binary: it stands for target/release/reward-ledger, a free port for 7430, and what builds is left
out. `[..]` in an output is any text within a line.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "ledger-http.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
# A busy machine, and a recipe that starts four processes.
WITHIN_S = 120
RUNNERS = {
    "sh": ["bash", "-euo", "pipefail", "-c"],
    "python": [sys.executable, "-c"],
    "js": ["node", "--input-type=module", "-e"],
}


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def recipes():
    """Language, code and expected output of each block that is meant to be run."""
    for language, code, expected in BLOCK.findall(PAGE.read_text()):
        if language == "text":
            raise SystemExit("an output stands without its recipe")
        if language not in RUNNERS:
            raise SystemExit(f"nothing runs blocks of {language}")
        if not expected:
            raise SystemExit(f"a recipe without its output:\n{code}")
        yield language, code, expected


def check(code, printed, expected):
    pattern = ".*".join(re.escape(part) for part in expected.split("[..]"))
    if re.fullmatch(pattern, printed) is None:
        raise SystemExit(f"--- recipe\n{code}--- printed\n{printed}--- the page says\n{expected}")


def serve(code, expected, place):
    """Starts what serves in a group of its own, and waits for all that it is to print."""
    commands = "".join(line for line in code.splitlines(keepends=True) if not line.startswith("cargo "))
    serving = subprocess.Popen(
        ["bash", "-c", commands], cwd=place, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    signal.alarm(WITHIN_S)
    printed = "".join(serving.stdout.readline() for _ in expected.splitlines())
    signal.alarm(0)
    return serving, printed


def main():
    program = Path(sys.argv[1]).resolve()
    left_out = {"js"} if "--without-node" in sys.argv[2:] else set()
    place = Path(tempfile.mkdtemp())
    (place / "target" / "release").mkdir(parents=True)
    (place / "target" / "release" / "reward-ledger").symlink_to(program)
    port = f":{free_port()}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REWARD_LEDGER_")}
    os.environ.clear()
    os.environ.update(environment)
    served, ran = [], {language: 0 for language in RUNNERS}
    try:
        for language, code, expected in recipes():
            if language in left_out:
                continue
            ran[language] += 1
            code, expected = code.replace(":7430", port), expected.replace(":7430", port)
            if "reward-ledger serve" in code:
                serving, printed = serve(code, expected, place)
                served.append(serving)
            else:
                done = subprocess.run(
                    [*RUNNERS[language], code], cwd=place, timeout=WITHIN_S, stdout=subprocess.PIPE, text=True
                )
                printed = done.stdout
                if done.returncode != 0:
                    raise SystemExit(f"exit code {done.returncode}:\n{code}{printed}")
            check(code, printed, expected)
    finally:
        for serving in served:
            os.killpg(serving.pid, signal.SIGTERM)
        codes = [serving.wait(WITHIN_S) for serving in served]
        shutil.rmtree(place)
    if not served or any(codes):
        raise SystemExit(f"the service ended with {codes}")
    for language, count in ran.items():
        if count == 0 and language not in left_out:
            raise SystemExit(f"the page has no recipe in {language}")
    print(", ".join(f"{count} recipes in {language}" for language, count in ran.items() if count))


main()
