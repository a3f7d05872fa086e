"""Feed mutated logs to `explain`, guided by coverage: no exception, no time that grows too fast.

    python -m venv fuzz && fuzz/bin/pip install atheris .
    fuzz/bin/python scripts/prove/fuzz_explain.py 3600

The seeds are the logs of `tests/cases/logs` and every fixed text of the table. A log that raises,
or that takes longer than `ALLOWED` seconds for each of its kilobytes, ends the run and is written
to `--crashes`. What was run is written to `scripts/prove/results/fuzz-explain-DATE-SECONDS.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from importlib.resources import files
from pathlib import Path

import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

with atheris.instrument_imports(include=["ortgpu_fix.log_lines"]):
    from ortgpu_fix.log_lines import matcher
    from ortgpu_fix.log_lines.failures import parse_failures

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
ALLOWED = 0.2
"""Seconds of CPU for each kilobyte, instrumented; a hundred times what an ordinary log takes."""
LEAST = 1.0
"""Seconds that any log may take, however short."""
LONGEST = 16_384
PIECES = 4
"""One log in so many is fed in two pieces, as a long one is."""

TABLE = parse_failures(
    tomllib.loads((files("ortgpu_fix.data") / "failures.toml").read_text("utf-8"))
)


def one(data: bytes) -> None:
    """Explain one log, in both languages, and look at what is said of it."""
    text = data.decode("utf-8", errors="replace")
    began = time.process_time()
    whole = not data or data[0] % PIECES
    log = text if whole else iter((text[: len(text) // 2], text[len(text) // 2 :]))
    found = matcher.explain_log(log, TABLE, "zh" if len(data) % 2 else "en")
    spent = time.process_time() - began
    if spent > max(LEAST, ALLOWED * len(data) / 1000):
        raise TimeoutError(f"{spent:.1f} s for {len(data)} bytes")
    lines = text.count("\n") + 1
    codes = [each.code for each in found]
    if len(set(codes)) != len(codes):
        raise AssertionError(f"a code stands twice: {codes}")
    for each in found:
        if not (each.cause and each.remedy and 1 <= each.line_number <= lines and each.evidence):
            raise AssertionError(each)


def main() -> None:
    """Run for so many seconds, and write down what was run."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("seconds", type=int)
    parser.add_argument("--work", type=Path, default=Path("fuzz-work"), help="corpus and crashes")
    arguments = parser.parse_args()
    corpus = arguments.work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    logs = sorted((ROOT / "tests" / "cases" / "logs").rglob("*.txt"))
    for path in logs:
        text = path.read_text("utf-8").split("\n")
        body = "\n".join(line for line in text if not line.startswith("# "))
        (corpus / f"{path.parent.name}-{path.stem}").write_text(body, "utf-8")
    words = arguments.work / "words.txt"
    anchors = {each.anchor for row in TABLE.failures for each in row.patterns}
    anchors |= {each.anchor for each, _ in TABLE.parsers.rows}
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in sorted(anchors)), "utf-8")
    seeds = len(list(corpus.iterdir()))
    began = time.time()
    child = os.fork()
    if not child:
        options = [
            sys.argv[0],
            f"-max_total_time={arguments.seconds}",
            f"-max_len={LONGEST}",
            f"-dict={words}",
            f"-artifact_prefix={arguments.work}/crash-",
            "-timeout=60",
            "-rss_limit_mb=1500",
            "-print_final_stats=1",
            str(corpus),
        ]
        atheris.Setup(options, one)
        atheris.Fuzz()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    document = {
        "date": time.strftime("%Y-%m-%d", time.gmtime(began)),
        "seconds": round(time.time() - began),
        "asked_seconds": arguments.seconds,
        "tool": "atheris (libFuzzer), one process",
        "python": platform.python_version(),
        "seeds": seeds,
        "inputs_kept": len(list(corpus.iterdir())),
        "exit_status": os.waitstatus_to_exitcode(status),
        "crashes": sorted(path.name for path in arguments.work.glob("crash-*")),
    }
    out = (
        ROOT
        / "scripts"
        / "prove"
        / "results"
        / f"fuzz-explain-{document['date']}-{arguments.seconds}.json"
    )
    out.write_text(json.dumps(document, indent=2) + "\n", "utf-8")


def _escaped(word: str) -> str:
    return "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\' else f"\\x{byte:02x}"  # noqa: PLR2004
        for byte in word.encode()
    )


if __name__ == "__main__":
    main()
