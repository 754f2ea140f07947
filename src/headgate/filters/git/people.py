"""Who a git identity is here: a commit's name and mail are not those of a key or a token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headgate.core.identity.model import UNKNOWN_WRITER, person
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.git.model import GitIdentity


@dataclass(frozen=True)
class KnownPeople:
    """The names that are known here, and whose each declared git identity is.

    `declared` has mail addresses and names of git in one spelling, and the person behind each.
    """

    names: frozenset[str]
    declared: Mapping[str, str]

    @classmethod
    def of(cls, store: OpsStore) -> KnownPeople:
        """From keys, from who submitted here before, and from `headgate keys git add`."""
        declared = {one.identity: person(one.name) for one in store.keys.git_identities()}
        names = {key.name for key in store.keys.every()} | store.control.submitters()
        return cls(frozenset(map(person, names)) | {*declared.values()}, declared)

    def authors(self, writers: Iterable[GitIdentity]) -> frozenset[str]:
        """Everybody whom these writers may be; none of them may approve what they wrote.

        An identity that is nobody's here is among them as `git:Name <mail>`: what it wrote can be
        approved by nobody before somebody who is known submits it.
        """
        return frozenset[str]().union(*(self._names_of(one) for one in writers))

    def _names_of(self, writer: GitIdentity) -> frozenset[str]:
        name, mail = person(writer.name), person(writer.mail)
        # The part before the @ may be a key's name, and may be another person's: that is enough to
        # keep its owner from approving, and too little to know the writer by.
        possible = {name, mail, mail.partition("@")[0]} - {""}
        sure = {self.declared[text] for text in (name, mail) if text in self.declared}
        sure |= {name, mail} & self.names
        unknown = set[str]() if sure else {f"{UNKNOWN_WRITER}{writer}"}
        return frozenset(possible | sure | unknown)
