"""The path of filters as steps: create, approve, deploy, route, update, roll back, pause, prove."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.cli.filters_look import (
    CONSUMERS,
    DEALERS,
    NUMBERS,
    SOURCE,
    child,
    dearer,
    documents,
    expected,
    filter_of,
    samples,
    serve,
)
from headgate.cli.steps import Step, Steps, command
from headgate.cli.walk import Walk
from headgate.errors import ForbiddenError, OperationError

if TYPE_CHECKING:
    import httpx

    from headgate.api.client import Client
    from headgate.api.models import DeploymentOut
    from headgate.checks.filter_proof import FilterProof
    from headgate.checks.filter_proof_gather import Place
    from headgate.feeds.events.drawing import Drawn
    from headgate.local.process import Child
    from headgate.settings import Settings
    from headgate.store.ops import OpsStore

NAME_WIDTH = 10
JOB = f"router-{SOURCE}"
BUNDLES = ("kafka", "spark", "connect", "debezium-postgres")
PEOPLE = {
    "ana": ("author", "approver"),
    "ben": ("approver",),
    "dora": ("deployer",),
    "shop": ("producer",),
}
STOP_SECONDS, WAIT_SECONDS, LIVE_SECONDS = 20.0, 120.0, 60.0
LEAST = Decimal(500)


class FiltersWalk(Walk):
    """The steps of `headgate demo filters`."""

    def __init__(self, steps: Steps, root: Path, home: Path) -> None:
        super().__init__(steps, root)
        self._home = home
        self._stack = ExitStack()
        self._clients: dict[str, Client] = {}
        self._sent = 0
        self._expected: dict[str, list[str]] = {dealer: [] for dealer in DEALERS}

    def fetch(self) -> float:
        """Java and the jars of every service; the seconds it took, mostly downloads if any."""
        from headgate.engine.bundles import bundle
        from headgate.engine.java import find_java

        with self._steps.step("fetch") as step:
            java = find_java()
            jars = [jar for name in BUNDLES for jar in bundle(name)]
            step.words = f"Java {java.version}, {len(jars)} jars verified"
        return step.seconds

    def up(self) -> None:
        from headgate.settings import load_settings

        with self._steps.step("up") as step:
            command("local", "up", "--with", "postgres,connect", "--timeout", "240")
            running = load_settings(self._root)
            step.words = (
                f"broker {running.bootstrap_servers}, PostgreSQL on {running.postgres_port},"
                f" Connect {running.kafka_connect_url}, engine"
            )

    def source(self) -> None:
        with self._steps.step("source") as step:
            command("connect", "deploy", "events")
            command("job", "start", JOB)
            step.words = f"Debezium reads event_headers into {SOURCE}; one query routes it"

    @contextmanager
    def served(self, store: OpsStore) -> Generator[None]:
        """The API with a key for each person; all that was started here is stopped behind it."""
        with self._stack:
            self._serve(store)
            yield

    def _serve(self, store: OpsStore) -> None:
        from headgate.api.client import Client
        from headgate.control.identity.keys import Keys
        from headgate.local.process import any_port

        with self._steps.step("serve") as step:
            keys = Keys(store.keys)
            secrets = {who: keys.create(who, r, 1, "demo").secret for who, r in PEOPLE.items()}
            server, url = serve(self._home / "logs" / "api.log", any_port())
            self._stack.callback(server.stop, STOP_SECONDS)
            for who, secret in secrets.items():
                self._clients[who] = self._stack.enter_context(Client(url, secret))
            self._producer = self._stack.enter_context(_producer(url, secrets["shop"]))
            people = ", ".join(f"{who} ({' and '.join(r)})" for who, r in PEOPLE.items())
            step.words = f"{url}; keys for {people}"

    def create(self) -> None:
        ana = self._clients["ana"]
        with self._steps.step("create") as step:
            for dealer, document in documents(self._root).items():
                name = ana.create(document).id
                made, valid = ana.generate(name), ana.validate(name)
                step.log.write(f"{dealer}\n{made.sql}\n")
                if not (made.valid and valid.valid):
                    raise OperationError(f"{name} is not valid", why=str(valid.errors))
            step.words = "three filters by ana: two statements each, valid, waiting for approval"

    def approve(self) -> None:
        with self._steps.step("approve") as step:
            refused = self._refused_to_ana(filter_of(DEALERS[0]))
            for dealer in DEALERS:
                self._approve(filter_of(dealer))
            step.log.write(f"{refused}\n")
            step.words = "ana may not approve what she wrote; ben approves all three"

    def _refused_to_ana(self, name: str) -> str:
        """She has the role, and wrote it: that must be refused."""
        ana = self._clients["ana"]
        try:
            ana.approve(name, ana.get(name).revision)
        except ForbiddenError as error:
            return error.one_line
        raise OperationError(f"ana approved {name}, which she wrote")

    def _approve(self, name: str) -> None:
        ben = self._clients["ben"]
        ben.approve(name, ben.get(name).revision, "looked at the SQL")

    def deploy(self, dealers: Sequence[str] = DEALERS, step_name: str = "deploy") -> None:
        dora = self._clients["dora"]
        with self._steps.step(step_name) as step:
            begun = time.monotonic()
            for dealer in dealers:
                self._live(dora.deploy(filter_of(dealer)), step)
            took = time.monotonic() - begun
            step.words = f"{len(dealers)} live after {took:.1f} s, no query restarted"

    def _live(self, asked: DeploymentOut, step: Step) -> None:
        dora = self._clients["dora"]
        ended = dora.wait(asked.operation, LIVE_SECONDS)
        step.log.write(f"{asked.message}: {ended.state}\n")
        if ended.state != "succeeded":
            raise OperationError(
                f"the {ended.kind} of {ended.filter_id} is {ended.state}", why=ended.error or ""
            )

    def consume(self) -> list[Child]:
        with self._steps.step("consume") as step:
            started = [self._consumer(number) for number in NUMBERS]
            step.words = "three consumers, each on its own topic and group"
        return started

    def _consumer(self, number: str) -> Child:
        log = self._home / "logs" / f"consumer-{number}.log"
        started = child(("feed", "consumer", CONSUMERS.format(number)), log)
        self._stack.callback(started.stop, STOP_SECONDS)
        return started

    def samples(self, store: OpsStore) -> None:
        """The documents' three events: each dealer logs its own."""
        events = samples(self._root)
        with self._steps.step("samples") as step:
            self._post(events)
            self._arrived(store, expected(events), step)
            logs = [(self._home / "logs" / f"consumer-{n}.log").read_text("utf-8") for n in NUMBERS]
            for event, log in zip(events, logs, strict=True):
                if event.id not in log:
                    raise OperationError(f"the consumer of {event.dealer} did not log {event.id}")
            step.words = "one event each, logged by its own dealer and by no other"

    def events(self, store: OpsStore, count: int, seed: int) -> None:
        events = _drawn(count, seed, "event")
        with self._steps.step("events") as step:
            self._post(events)
            self._arrived(store, expected(events), step)
            step.words = f"{count:,} more, of all dealers and of nobody; {self._told()}"

    def update(self, store: OpsStore, count: int, seed: int) -> None:
        """A new version of the first filter, by two people, while the others go on."""
        name, ana = filter_of(DEALERS[0]), self._clients["ana"]
        with self._steps.step("update") as step:
            document = dearer(documents(self._root)[DEALERS[0]], LEAST)
            ana.update(name, document, ana.etag(name))
            self._approve(name)
            self._live(self._clients["dora"].deploy(name), step)
            events = _drawn(count, seed, "updated")
            self._post(events)
            self._arrived(store, expected(events, LEAST), step)
            step.words = f"version 2 of {name} takes only what costs {LEAST} or more"

    def rollback(self, store: OpsStore, count: int, seed: int) -> None:
        name = filter_of(DEALERS[0])
        with self._steps.step("rollback") as step:
            self._live(self._clients["dora"].rollback(name), step)
            events = _drawn(count, seed, "rolledback")
            self._post(events)
            self._arrived(store, expected(events), step)
            step.words = f"{name} is as it was, in one call"

    def pause(self, store: OpsStore, count: int, seed: int) -> None:
        """The third filter gets nothing while it is paused, and all of it afterwards."""
        name, dora = filter_of(DEALERS[2]), self._clients["dora"]
        with self._steps.step("pause") as step:
            self._live(dora.pause(name), step)
            events = _drawn(count, seed, "paused")
            self._post(events)
            told = expected(events)
            held = told.pop(DEALERS[2])
            self._arrived(store, told, step)
            self._nothing_of(held)
            step.words = f"{name} gets none of {len(held)} events while the others get theirs"
        with self._steps.step("resume") as step:
            self._live(dora.resume(name), step)
            self._arrived(store, {DEALERS[2]: held}, step)
            step.words = f"{name} catches up with {len(held)} events beside live traffic"

    def _post(self, events: Sequence[Drawn]) -> None:
        from headgate.feeds.events.sending import ToApi, send

        done = send(ToApi(self._producer), events, 0, 30.0, lambda _: None)
        self._sent += done.created

    def _arrived(self, store: OpsStore, told: Mapping[str, Sequence[str]], step: Step) -> None:
        """All that was posted is judged, and what a dealer must get has had its effect."""
        from headgate.checks.filter_proof_gather import handled, routed_records
        from headgate.cli.reconcile_look import wait_for

        for dealer, ids in told.items():
            self._expected[dealer] += ids
        states = {p.filter: p.state for p in self.places()}

        def lacking() -> dict[str, int]:
            seen = {d: handled(states[filter_of(d)]) for d in told}
            return {d: sum(i not in seen[d] for i in self._expected[d]) for d in told}

        def words() -> str:
            return f"{sum(routed_records(store, SOURCE).values())} of {self._sent} judged, {lacking()} to come"

        wait_for(
            lambda: (
                sum(routed_records(store, SOURCE).values()) >= self._sent
                and not any(lacking().values())
            ),
            words,
            step,
            WAIT_SECONDS,
        )

    def _nothing_of(self, ids: Sequence[str]) -> None:
        from headgate.checks.filter_proof_gather import handled

        states = {p.filter: p.state for p in self.places()}
        early = set(ids) & set(handled(states[filter_of(DEALERS[2])]))
        if early:
            raise OperationError(f"{len(early)} events passed a paused filter")

    def _told(self) -> str:
        return ", ".join(f"{len(ids)} for {dealer}" for dealer, ids in self._expected.items())

    def places(self) -> tuple[Place, ...]:
        from headgate.checks.filter_proof_gather import places

        topics = {filter_of(d): d2["outputTopic"] for d, d2 in documents(self._root).items()}
        return places(self._home, topics, [self._root / CONSUMERS.format(n) for n in NUMBERS])

    def prove(self, store: OpsStore, settings: Settings) -> tuple[FilterProof, ...]:
        """Every filter against ledger, topic and consumer."""
        from headgate.checks.filter_proof_gather import prove

        bootstrap = settings.need("bootstrap_servers")
        with self._steps.step("prove") as step:
            proofs = tuple(
                prove(store, bootstrap, SOURCE, place, self._expected[dealer])
                for dealer, place in zip(DEALERS, self.places(), strict=True)
            )
            faults = [fault for proof in proofs for fault in proof.faults]
            for fault in faults:
                step.log.write(f"{fault}\n")
            step.words = (
                f"{len(faults)} statements do not hold"
                if faults
                else "no gap, no overlap; ledger, topics and consumers count the same"
            )
        return proofs

    def stop(self) -> None:
        with self._steps.step("stop") as step:
            command("job", "stop", JOB)
            step.words = "the router, between two batches"


def _drawn(count: int, seed: int, prefix: str) -> list[Drawn]:
    from headgate.feeds.events.drawing import draw

    return list(draw(count, seed, prefix))


@contextmanager
def _producer(url: str, key: str) -> Generator[httpx.Client]:
    import httpx

    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=headers, timeout=30, trust_env=False) as client:
        yield client
