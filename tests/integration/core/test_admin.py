"""A broker that is away must not take an engine down that waits for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# What is left behind while a broker is away: a client in a cycle that still waits for an answer. Its
# thread runs the collector when the answer fails to come.
LEFT_BEHIND = """
import gc, time
from confluent_kafka import TopicCollection
from headgate.core.kafka.topics import Topics

gc.disable()
topics = Topics("127.0.0.1:1", 0.2)
topics.cycle = topics
future = topics._admin.describe_topics(TopicCollection(["x"]), request_timeout=0.2)["x"]
future.add_done_callback(lambda future: gc.collect())
del topics, future
time.sleep(1)
print("alive")
"""


def test_a_client_left_behind_waiting_does_not_take_the_process_down(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LEFT_BEHIND]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "alive\n"), ended.stderr
