"""`headgate local` and other commands, run in processes over a home of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from headgate.core.runtime.ports import any_port
from headgate.local.state import LocalFiles, Phase, ServiceState


class LocalEnvironment:
    """A Headgate home with an embedded broker on a free port, and commands that run on it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = os.environ | {
            "HEADGATE_HOME": str(home),
            "KAFKA_PORT": str(any_port()),
            "TOPIC": "orders",
            "DLQ_TOPIC": "orders-dlq",
            "BROKER": "embedded",
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", *words],
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, code: int = 0) -> str:
        process = self.start(*words)
        out, err = process.communicate(timeout=300)
        assert process.returncode == code, err
        return out if code == 0 else err

    def broker(self) -> ServiceState | None:
        files = LocalFiles(self.home)
        state = files.read_state() if files.supervisor_pid() else None
        return state.service("broker") if state else None

    def is_ready(self) -> bool:
        broker = self.broker()
        return broker is not None and broker.state == Phase.READY

    def broker_pid(self) -> int:
        broker = self.broker()
        assert broker is not None
        assert broker.pid is not None
        return broker.pid
