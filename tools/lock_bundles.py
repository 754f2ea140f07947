"""Write `bundles.lock.json`: fetch each artifact named here and note its SHA-256.

Run it after changing a version: `python tools/lock_bundles.py`. The `kafka` list is what a
transitive resolve of its first and last entries gives at run time, checked when they change.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from headgate.engine.bundles import LOCK_FILE, Artifact, digest, fetch

NOTES = {
    "spark": (
        "What the engine adds to the PySpark 4.1.3 wheel. The Kafka token provider is 4.0.0: later "
        "ones could not be fetched, and 4.0.0 works with the 4.1.3 connector. lz4, snappy and zstd "
        "are in the wheel."
    ),
    "kafka": (
        "A broker and its tools. log4j-slf4j-impl (not slf4j2) is the binding; without it the "
        "broker logs nothing."
    ),
}
COORDINATES = {
    "spark": """
        org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0
        org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3
        org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0
        org.apache.kafka:kafka-clients:3.9.1
        org.apache.commons:commons-pool2:2.12.1
        org.xerial:sqlite-jdbc:3.50.3.0
        org.postgresql:postgresql:42.7.7
    """,
    "kafka": """
        org.apache.kafka:kafka_2.13:4.3.1
        org.apache.kafka:kafka-clients:4.3.1
        org.apache.kafka:kafka-coordinator-common:4.3.1
        org.apache.kafka:kafka-group-coordinator:4.3.1
        org.apache.kafka:kafka-group-coordinator-api:4.3.1
        org.apache.kafka:kafka-metadata:4.3.1
        org.apache.kafka:kafka-raft:4.3.1
        org.apache.kafka:kafka-server:4.3.1
        org.apache.kafka:kafka-server-common:4.3.1
        org.apache.kafka:kafka-share-coordinator:4.3.1
        org.apache.kafka:kafka-storage:4.3.1
        org.apache.kafka:kafka-storage-api:4.3.1
        org.apache.kafka:kafka-tools-api:4.3.1
        org.apache.kafka:kafka-transaction-coordinator:4.3.1
        at.yawk.lz4:lz4-java:1.10.2
        com.dynatrace.hash4j:hash4j:0.22.0
        com.fasterxml.jackson.core:jackson-annotations:2.21
        com.fasterxml.jackson.core:jackson-core:2.21.2
        com.fasterxml.jackson.core:jackson-databind:2.21.2
        com.fasterxml.jackson.dataformat:jackson-dataformat-csv:2.21.2
        com.fasterxml.jackson.dataformat:jackson-dataformat-yaml:2.21.2
        com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.21.2
        com.github.ben-manes.caffeine:caffeine:3.2.0
        com.github.luben:zstd-jni:1.5.6-10
        com.google.re2j:re2j:1.8
        com.typesafe.scala-logging:scala-logging_2.13:3.9.6
        com.yammer.metrics:metrics-core:2.2.0
        commons-beanutils:commons-beanutils:1.11.0
        commons-collections:commons-collections:3.2.2
        commons-digester:commons-digester:2.1
        commons-logging:commons-logging:1.3.5
        commons-validator:commons-validator:1.10.1
        net.sf.jopt-simple:jopt-simple:5.0.4
        net.sourceforge.argparse4j:argparse4j:0.7.0
        org.bitbucket.b_c:jose4j:0.9.6
        org.hdrhistogram:HdrHistogram:2.2.2
        org.jspecify:jspecify:1.0.0
        org.pcollections:pcollections:4.0.2
        org.scala-lang:scala-library:2.13.18
        org.scala-lang:scala-reflect:2.13.18
        org.slf4j:slf4j-api:1.7.36
        org.xerial.snappy:snappy-java:1.1.10.7
        org.yaml:snakeyaml:2.5
        org.apache.logging.log4j:log4j-api:2.25.4
        org.apache.logging.log4j:log4j-core:2.25.4
        org.apache.logging.log4j:log4j-slf4j-impl:2.25.4
    """,
}


def unlocked(name: str) -> list[Artifact]:
    parts = [line.split(":") for line in COORDINATES[name].split()]
    return [Artifact(org, artifact, version, "") for org, artifact, version in parts]


def locked(name: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        out = fetch(unlocked(name), Path(folder), os.environ)
        artifacts = [
            {
                "org": a.org,
                "name": a.name,
                "version": a.version,
                "sha256": digest(out / a.file_name),
            }
            for a in unlocked(name)
        ]
    return {"note": NOTES[name], "artifacts": artifacts}


def main() -> None:
    lock = {"lock_version": 1, "bundles": {name: locked(name) for name in COORDINATES}}
    LOCK_FILE.write_text(json.dumps(lock, indent=2) + "\n")
    print(f"wrote {LOCK_FILE.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
