"""The backup stores, and the fields of each (docs/reference/wizard-steps.md, "Backup")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from platform_common.message import Sentence
from platform_common.secret import Secret
from wizard_app.setup.steps import backup_rules
from wizard_app.setup.steps.backup_rules import Rule

STORE_B_HOST = "r2.cloudflarestorage.com"
ENDPOINT = "endpoint"
# For the S3 stores: the prefix of their fields, and rclone's name.
_S3 = {"store_b": ("b", "Cloudflare"), "store_c": ("c", "Other")}


class Field(NamedTuple):
    """A field of the form: its name, its label, the message if it is empty, and its rule."""

    name: str
    label: Sentence
    missing: Sentence
    rule: Rule
    hint: Sentence
    secret: bool = False

    @property
    def member(self) -> str:
        """The name of its value in `backup_meta`."""
        return self.name.partition("_")[2]

    def problem(self, value: str) -> Sentence | None:
        """What is wrong with a value, without showing it."""
        return self.rule(value) if value else self.missing


class Store(NamedTuple):
    """A kind of store, and the fields of its form, in order."""

    kind: str
    name: Sentence
    about: Sentence
    fields: tuple[Field, ...]

    @property
    def secrets(self) -> tuple[Field, ...]:
        """The fields whose values are only kept in memory."""
        return tuple(field for field in self.fields if field.secret)

    @property
    def details(self) -> tuple[Field, ...]:
        """The other fields."""
        return tuple(field for field in self.fields if not field.secret)

    def meta(self, values: Mapping[str, str]) -> dict[str, str]:
        """`backup_meta` for values by field name; only the details."""
        found = {field.member: values[field.name] for field in self.details}
        if self.kind == "store_b":
            found[ENDPOINT] = store_b_endpoint(found["account_id"])
        return found

    def remote(
        self, meta: Mapping[str, str], secrets: Mapping[str, Secret]
    ) -> dict[str, str | Secret]:
        """The section of an rclone.conf, for secrets by field name."""
        if self.kind == "store_a":
            key = secrets["a_application_key"]
            return {"type": "b2", "account": meta["account_id"], "key": key}
        prefix, provider = _S3[self.kind]
        return {
            "type": "s3",
            "provider": provider,
            "access_key_id": secrets[f"{prefix}_access_key"],
            "secret_access_key": secrets[f"{prefix}_secret_key"],
            "endpoint": meta[ENDPOINT],
            "acl": "private",
        }

    def filled(self, meta: Mapping[str, str]) -> dict[str, list[str]]:
        """The fields of the form for a `backup_meta`."""
        return {field.name: [meta[field.member]] for field in self.details}

    def check(self, meta: Mapping[str, str]) -> None:
        """Raise `ValueError` unless `meta` is a `backup_meta` of this store."""
        values = {field.name: meta.get(field.member, "") for field in self.details}
        whole = self.meta(values)
        if meta.keys() != whole.keys():
            raise ValueError(f"must have exactly {', '.join(whole)}")
        for field in self.details:
            if (problem := field.problem(values[field.name])) is not None:
                raise ValueError(f"{field.member}: {problem}")
        if meta != whole:
            raise ValueError(f"{ENDPOINT}: must be that of the account")


def store_b_endpoint(account_id: str) -> str:
    """The address of an account at store_b."""
    return f"https://{account_id}.{STORE_B_HOST}"


_ACCOUNT = (Sentence("Account ID"), Sentence("Enter your account ID"), backup_rules.account)
_ONCE = Sentence("Shown only once, when you create the key.")


def _key(name: str, label: Sentence, missing: Sentence, hint: Sentence) -> Field:
    return Field(name, label, missing, backup_rules.key(label), hint, secret=True)


def _pair(prefix: str) -> tuple[Field, Field]:
    """The two fields of an S3 key."""
    access, no_access = Sentence("Access key"), Sentence("Enter your access key")
    secret, no_secret = Sentence("Secret key"), Sentence("Enter your secret key")
    return (
        _key(f"{prefix}_access_key", access, no_access, Sentence("Also called access key id.")),
        _key(f"{prefix}_secret_key", secret, no_secret, _ONCE),
    )


def _bucket(name: str, pattern: str, otherwise: Sentence) -> Field:
    label, missing = Sentence("Bucket name"), Sentence("Enter your bucket name")
    rule = backup_rules.bucket(pattern, otherwise)
    return Field(name, label, missing, rule, Sentence("A bucket that already exists."))


_STORE_A = Store(
    "store_a",
    Sentence("Backblaze B2"),
    Sentence("With an application key from your account."),
    (
        Field("a_account_id", *_ACCOUNT, Sentence("The keyID of the application key.")),
        _key(
            "a_application_key",
            Sentence("Application key"),
            Sentence("Enter your application key"),
            _ONCE,
        ),
        _bucket(
            "a_bucket",
            r"[A-Za-z0-9][A-Za-z0-9-]{1,61}[A-Za-z0-9]",
            Sentence(
                "Bucket name can only contain letters, digits and hyphens, and must have "
                "3 to 63 characters"
            ),
        ),
    ),
)
_STORE_B = Store(
    "store_b",
    Sentence("Cloudflare R2"),
    Sentence("With an API token from your account."),
    (
        Field("b_account_id", *_ACCOUNT, Sentence("You find it next to your buckets.")),
        *_pair("b"),
        _bucket(
            "b_bucket",
            r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]",
            Sentence(
                "Bucket name can only contain a to z, 0 to 9 and hyphens, and must have "
                "3 to 63 characters"
            ),
        ),
    ),
)
_STORE_C = Store(
    "store_c",
    Sentence("Other S3-compatible storage"),
    Sentence("At a provider, or in your own network."),
    (
        Field(
            "c_endpoint",
            Sentence("Storage address"),
            Sentence("Enter the address of your storage"),
            backup_rules.endpoint,
            Sentence("Such as https://s3.example.com."),
        ),
        *_pair("c"),
        _bucket(
            "c_bucket",
            r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]",
            Sentence(
                "Bucket name can only contain letters, digits, dots, hyphens and "
                "underscores, and must have 3 to 255 characters"
            ),
        ),
    ),
)
STORES: Mapping[str, Store] = {store.kind: store for store in (_STORE_A, _STORE_B, _STORE_C)}
