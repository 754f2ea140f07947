"""Embedded services for development and demos: Kafka, Spark engine, Cassandra, PostgreSQL, registry, Connect.

`headgate local up` meets the files in this order: `stack` writes a plan and starts `supervisor`, a detached
process that makes services by `service_kinds`, starts each as a child (`process`, `service`; one file for each
server) and writes what it sees by `state`. `health` asks each service itself, `doctor` looks at the
machine, `observability` starts Prometheus and Grafana in Docker.
A stack knows its own parts: what answers on a port counts only when it is this stack's own.
"""
