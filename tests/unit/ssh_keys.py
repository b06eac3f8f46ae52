"""SSH keys for tests, as ssh-keygen would write them."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def new_key(file: Path, passphrase: str = "") -> str:
    """Write an Ed25519 key to `file` and its public half beside it as .pub; returns that without its comment."""
    key = Ed25519PrivateKey.generate()
    lock = form.BestAvailableEncryption(passphrase.encode()) if passphrase else form.NoEncryption()
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH).decode()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.write_bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, lock))
    file.with_name(f"{file.name}.pub").write_text(f"{public} {file.name}\n", encoding="utf-8")
    return public
