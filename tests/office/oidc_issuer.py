"""An OpenID Connect issuer on loopback: discovery, code flow with PKCE, keys, signed ID tokens."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, CLIENT_SECRET = "scheduling", "issuer-secret"


def make_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Issuer:
    """`claims`: of the person who logs in. `changes`: what a broken or hostile issuer changes in
    the ID token. `signing_key`: another than the published one forges tokens.
    """

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    key: rsa.RSAPrivateKey = field(default_factory=make_key)
    signing_key: rsa.RSAPrivateKey | None = None
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def authorize(self, url: str) -> str:
        """What the person's browser does at the issuer: returns the address to which it goes back.

        Checks the request as RFC 6749 and RFC 7636 say.
        """
        asked = dict(parse_qsl(urlsplit(url).query))
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT_ID)
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def keys(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [public | {"kid": "one", "alg": "RS256", "use": "sig"}]}

    def token(self, given: dict[str, str]) -> tuple[int, dict[str, Any]]:
        asked = self.codes.pop(given.get("code", ""), None)
        challenge = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        fits = asked is not None and (
            (given.get("client_id"), given.get("client_secret")) == (CLIENT_ID, CLIENT_SECRET)
            and given.get("redirect_uri") == asked["redirect_uri"]
            and base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() == asked["code_challenge"]
        )
        if not fits:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        times = {"iat": now, "exp": now + 300}
        content = {"iss": self.url, "aud": CLIENT_ID, **times, **self.claims, **self.changes}
        signing_key = self.signing_key or self.key
        id_token = jwt.encode(content, signing_key, algorithm="RS256", headers={"kid": "one"})
        return 200, {"access_token": "opaque", "token_type": "Bearer", "id_token": id_token}


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            issuer.asked.append(self.path)
            if self.path == "/.well-known/openid-configuration":
                self.answer(200, issuer.discovery())
            elif self.path == "/keys":
                self.answer(200, issuer.keys())
            elif self.path == "/userinfo" and self.headers["Authorization"] == "Bearer opaque":
                self.answer(200, {"sub": issuer.claims["sub"]} | issuer.userinfo)
            else:
                self.answer(404, {})

        def do_POST(self) -> None:
            issuer.asked.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            given = {name: values[0] for name, values in parse_qs(body).items()}
            self.answer(*issuer.token(given))

        def answer(self, status: int, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()
