"""Sums up a test run: what failed with its output, what was skipped and why, and how many of each.

usage: summary.py DIRECTORY [FAILED-STEP...]

DIRECTORY holds go-*.json (of go test -json) and *.xml (of pytest --junitxml). The further arguments are steps that
failed and write neither, such as gofmt. The exit status is 1 when anything failed, or nothing ran.
"""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

# Steps whose tests are counted one by one: when they fail, so do some of these.
COUNTED = ("go test", "go test, with CUDA", "go test -race", "tests through Jupyter")


@dataclass
class Results:
    passed: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)  # name, output
    skipped: list[tuple[str, str]] = field(default_factory=list)  # name, reason


def read_go(path: Path, results: Results) -> None:
    """Counts the tests in the output of go test -json, and packages that failed without a test that did."""
    suite = path.stem.removeprefix("go-")
    output: dict[tuple[str, str], list[str]] = {}
    build_output: dict[str, list[str]] = {}
    parents = set()
    ended: dict[tuple[str, str], str] = {}
    for line in path.read_text(errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:  # what go prints before it starts
            continue
        key = (event.get("Package", ""), event.get("Test", ""))
        action = event["Action"]
        if action == "build-output":
            build_output.setdefault(event["ImportPath"], []).append(event["Output"])
        elif action == "output":
            output.setdefault(key, []).append(event["Output"])
        elif action in ("pass", "fail", "skip"):
            ended[key] = action
            if "FailedBuild" in event:
                output.setdefault(key, []).extend(build_output.get(event["FailedBuild"], []))
            test = key[1]
            while "/" in test:
                test = test.rpartition("/")[0]
                parents.add((key[0], test))
    failing_packages = {package for (package, test), action in ended.items() if test and action == "fail"}
    for key, action in ended.items():
        package, test = key
        name = f"{package.partition('attnb/attnb/')[2] or package} {test} ({suite})".replace("  ", " ")
        text = "".join(output.get(key, []))
        if not test:
            if action == "fail" and package not in failing_packages:
                results.failed.append((name, text))
        elif action == "fail":
            results.failed.append((name, text))
        elif action == "skip":
            results.skipped.append((name, go_reason(text)))
        elif key not in parents:
            results.passed += 1


def go_reason(text: str) -> str:
    """The message of t.Skip: what follows the file and line."""
    reasons = re.findall(r"^\s+\S+\.go:\d+: (.*)$", text, re.MULTILINE)
    return reasons[-1] if reasons else "no reason given"


def read_junit(path: Path, results: Results) -> None:
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name')}"
        bad = [child for child in case if child.tag in ("failure", "error")]
        skips = [child for child in case if child.tag == "skipped"]
        if bad:
            results.failed.append((name, bad[0].text or bad[0].get("message", "")))
        elif skips:
            results.skipped.append((name, skips[0].get("message", "no reason given")))
        else:
            results.passed += 1


def main(directory: str, steps: list[str]) -> int:
    results = Results()
    for path in sorted(Path(directory).glob("go-*.json")):
        read_go(path, results)
    for path in sorted(Path(directory).glob("*.xml")):
        read_junit(path, results)
    counted = len(results.failed)
    for step in steps:
        if step not in COUNTED or counted == 0:
            results.failed.append((step, "see its output above\n"))
    for name, text in results.failed:
        print(f"FAILED {name}\n{text.rstrip()}\n")
    alike: dict[tuple[str, str], list[str]] = {}
    for name, reason in results.skipped:
        top = re.sub(r"/\S+", "/...", name.partition(" ")[2] or name)
        alike.setdefault((name.partition(" ")[0] + " " + top, reason), []).append(name)
    for (group, reason), names in alike.items():
        if len(names) > 5:
            print(f"skipped {len(names)} cases of {group}: {reason}")
        else:
            print("\n".join(f"skipped {name}: {reason}" for name in names))
    print(f"{results.passed} passed, {len(results.failed)} failed, {len(results.skipped)} skipped")
    return 1 if results.failed or results.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
