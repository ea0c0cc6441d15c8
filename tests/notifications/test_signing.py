"""Our signatures, checked by the public library of Standard Webhooks."""

import base64
import json
import random
import time
import uuid

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from notifications.webhooks.signing import new_secret, signature_headers

PLANES = ((0x20, 0x7E), (0x00, 0x1F), (0xA0, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF))


def random_body(chance: random.Random) -> bytes:
    """JSON in raw UTF-8 with letters of every plane."""
    letters = (chr(chance.randint(*chance.choice(PLANES))) for _ in range(chance.randint(0, 200)))
    return json.dumps({"text": "".join(letters)}, ensure_ascii=False).encode()


def verify_random_payloads(count: int) -> None:
    chance = random.Random(20261121)
    for _ in range(count):
        secret, body = new_secret(), random_body(chance)

        headers = signature_headers(
            message_id=f"ntf_{uuid.uuid4()}",
            timestamp=int(time.time()),
            body=body,
            secrets=[secret],
        )

        assert Webhook(secret).verify(body, headers) == json.loads(body)


def test_random_payloads_verify():
    verify_random_payloads(300)


@pytest.mark.deep
def test_very_many_random_payloads_verify():
    verify_random_payloads(10_000)


def test_headers_of_the_standards_example():
    """The test vector of the reference libraries."""
    headers = signature_headers(
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        body=b'{"test": 2432232314}',
        secrets=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    )

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_old_and_new_secret_verify_during_rotation():
    old, new, other = new_secret(), new_secret(), new_secret()

    headers = signature_headers(
        message_id="ntf_1", timestamp=int(time.time()), body=b"{}", secrets=[new, old]
    )

    assert Webhook(new).verify(b"{}", headers) == {}
    assert Webhook(old).verify(b"{}", headers) == {}
    with pytest.raises(WebhookVerificationError):
        Webhook(other).verify(b"{}", headers)


def test_tampered_body_does_not_verify():
    secret = new_secret()
    headers = signature_headers(
        message_id="ntf_1", timestamp=int(time.time()), body=b'{"a":1}', secrets=[secret]
    )

    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(b'{"a":2}', headers)


def test_secrets_are_32_random_bytes():
    secrets = [new_secret() for _ in range(20)]

    assert {len(base64.b64decode(secret.removeprefix("whsec_"))) for secret in secrets} == {32}
    assert len(set(secrets)) == 20
