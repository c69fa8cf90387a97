"""A person's own files: identity and contacts, and what is encrypted for them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Optional

from ._calls import Call
from ._documents import read
from ._files import file_options
from ._values import PathLike


@dataclass(frozen=True)
class Card:
    """The public part of an identity, to give to others."""

    name: str
    """What its owner is called."""
    fingerprint: str
    """What two people compare."""
    key: str
    """The key that signs, in hex."""
    made_at: datetime
    """When it was made."""
    card: str
    """The line to give to others."""


@dataclass(frozen=True)
class Contact:
    """A person whose card is kept."""

    name: str
    """What they are called here."""
    state: Literal["seen", "trusted"]
    """`trusted` where their fingerprint was confirmed."""
    fingerprint: str
    """The fingerprint of their card."""
    first_seen: datetime
    """When their card was added."""
    trusted_at: Optional[datetime]
    """When they were trusted."""
    grounds: Optional[Literal["fingerprint", "invitation"]]
    """Why they are trusted."""
    card: Card
    """Their card."""


class Home:
    """The folder with a person's identity and contacts.

        home = buckia.Home()
        print(home.make_identity("Anna").card)
    """

    def __init__(self, path: Optional[PathLike] = None, *, passphrase: Optional[str] = None) -> None:
        """Takes the folder.

        Args:
            path: The folder; None for `$BUCKIA_HOME`, else the usual one of the system.
            passphrase: What opens the identity where it is protected.
        """
        self._path = path
        self._passphrase = passphrase

    def _call(self, name: str, arguments: Optional[dict[str, Any]] = None, **options: Any) -> Any:
        call = Call()
        files = file_options(call, self._path, self._passphrase, **options)
        return call.command(None, name, arguments or {}, files)

    def make_identity(self, name: str) -> Card:
        """Makes the person's keys, protected where the home has a passphrase, and returns the card.

        Raises:
            IdentityError: There is an identity already, or the name cannot be one.
        """
        return read(Card, self._call("identity new", {"name": name})["identity"])

    def identity(self) -> Card:
        """The person's card.

        Raises:
            IdentityError: There is no identity.
        """
        return read(Card, self._call("identity show")["identity"])

    def rotate_identity(self) -> str:
        """Makes new keys in place of the old ones, and returns the line that tells the contacts."""
        rotation: str = self._call("identity rotate")["rotation"]
        return rotation

    def contacts(self) -> list[Contact]:
        """All contacts."""
        return [read(Contact, contact) for contact in self._call("contact list")["contacts"]]

    def add_contact(self, card: str, *, name: Optional[str] = None) -> Contact:
        """Adds a card, or the new keys of a contact. Neither is trusted yet.

        Args:
            card: The line of a card or a rotation.
            name: What to call them here; None for the name on the card.
        """
        return read(Contact, self._call("contact add", {"card": card, "name": name})["contact"])

    def trust_contact(self, name: str, fingerprint: str) -> Contact:
        """Trusts a contact whose fingerprint was compared with its owner."""
        arguments = {"name": name, "fingerprint": fingerprint}
        return read(Contact, self._call("contact trust", arguments)["contact"])

    def rename_contact(self, name: str, new_name: str) -> Contact:
        """Gives a contact another name."""
        return read(Contact, self._call("contact rename", {"name": name, "newName": new_name})["contact"])

    def remove_contact(self, name: str) -> Contact:
        """Removes a contact for good: nothing signed with their key is applied any more."""
        return read(Contact, self._call("contact remove", {"name": name})["removed"])

    def encrypt(
        self,
        path: PathLike,
        output: PathLike,
        *,
        to: Optional[Iterable[str]] = None,
        passphrase: Optional[str] = None,
        armor: bool = False,
        replace: bool = False,
    ) -> int:
        """Encrypts a file as age does, and returns its size in bytes.

        Args:
            path: The file.
            output: The encrypted file.
            to: Contacts, cards or recipients `age1…` who can open it.
            passphrase: What opens it instead.
            armor: Writes text.
            replace: Replaces a file that is there already.
        """
        arguments = {
            "path": os.fspath(path),
            "output": os.fspath(output),
            "to": None if to is None else list(to),
            "passphrase": passphrase,
            "armor": armor,
            "replace": replace,
        }
        return int(self._call("encrypt", arguments)["bytes"])

    def decrypt(
        self,
        path: PathLike,
        output: PathLike,
        *,
        identities: Iterable[PathLike] = (),
        passphrase: Optional[str] = None,
        replace: bool = False,
    ) -> int:
        """Decrypts a file of age's, and returns its size in bytes.

        Args:
            path: The encrypted file.
            output: The decrypted file.
            identities: Files of identities; the person's own where neither these nor a passphrase is given.
            passphrase: The passphrase that opens it.
            replace: Replaces a file that is there already.
        """
        arguments = {"path": os.fspath(path), "output": os.fspath(output), "replace": replace}
        return int(self._call("decrypt", arguments, identities=identities, passphrase=passphrase)["bytes"])
