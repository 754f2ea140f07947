"""`headgate obs` against a docker that only writes down what it is asked."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[3]


@dataclass
class Docker:
    """A stand-in on the PATH, and what it was asked."""

    folder: Path
    home: Path

    @property
    def asked(self) -> list[dict[str, str]]:
        log = self.folder / "asked"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def run(self, verb: str, **environ: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder}:{os.environ['PATH']}"
        return subprocess.run(
            [sys.executable, "-m", "headgate.cli.main", "-o", "json", "obs", verb],
            env={**os.environ, "PATH": path, "HEADGATE_HOME": str(self.home), **environ},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=240,
        )


@pytest.fixture
def docker(tmp_path: Path) -> Docker:
    made = Docker(tmp_path / "bin", tmp_path / "home")
    made.folder.mkdir()
    program = made.folder / "docker.py"
    program.write_text(
        "import json, os, pathlib, sys\n"
        f"log = pathlib.Path({str(made.folder)!r}) / 'asked'\n"
        "chosen = {k: v for k, v in os.environ.items() if 'GRAFANA' in k or 'PROMETHEUS' in k}\n"
        "log.open('a').write(json.dumps({'argv': ' '.join(sys.argv[1:]), **chosen}) + '\\n')\n"
        "sys.exit(1 if os.environ.get('DOCKER_AWAY') else 0)\n"
    )
    script = made.folder / "docker"
    # Not Python's path in the first line: the system cuts that at a blank.
    script.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{program}' \"$@\"\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return made


def test_up_starts_only_that_stack_and_says_where_it_is(docker: Docker) -> None:
    done = docker.run("up", METRICS_URL="http://localhost:9333/metrics")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    asked = docker.asked[-1]
    assert asked["argv"].startswith("compose -p headgate-obs -f ")
    assert asked["argv"].endswith("--profile obs up -d")
    assert told["grafana"] == f"http://localhost:{asked['GRAFANA_PORT']}"
    assert told["scrapes"] == "http://localhost:9333/metrics"
    assert '"localhost:9333"' in Path(asked["PROMETHEUS_FILE"]).read_text()
    again = docker.run("up")
    assert json.loads(again.stdout)["grafana"] == told["grafana"]


def test_down_forgets_what_they_kept(docker: Docker) -> None:
    docker.run("up")
    assert docker.run("down").returncode == 0
    assert docker.asked[-1]["argv"].endswith("--profile obs down --volumes")
    assert not (docker.home / "obs" / "ports.json").exists()


@pytest.mark.parametrize("verb", ["up", "down"])
def test_without_docker_it_is_said_with_exit_code_8(docker: Docker, verb: str) -> None:
    done = docker.run(verb, DOCKER_AWAY="1")
    assert done.returncode == 8
    assert "daemon does not answer" in done.stderr
    assert "prometheus --config.file=infra/prometheus.yml" in done.stderr
