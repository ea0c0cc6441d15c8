"""All settings in one file. Helpers read environment variables and refuse invalid values.

Without any variable the service runs on SQLite and a file broker under `var/`.

A comment `#:` describes the variable that is read below it, or the one that it names; `Default:`
says what the code does not. `manage.py write_settings_table` copies them to docs/operations.md.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Collection
from email.utils import parseaddr
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

from common.broker_address import parse_broker_url, parse_redis_url
from common.email_address import ascii_domain
from common.observability import log_format

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION = tomllib.loads((BASE_DIR / "pyproject.toml").read_text("utf-8"))["project"]["version"]
env = environ.Env()


def env_secret(name: str) -> str:
    """Read a secret from the variable, or from the file that `<name>_FILE` names.

    Files suit Docker's and Kubernetes' secrets: an environment is shown by many tools. Raises
    ImproperlyConfigured if both are set or the file can't be read.
    """
    value, file = os.environ.get(name, "").strip(), os.environ.get(f"{name}_FILE", "").strip()
    if not file:
        return value
    if value:
        raise ImproperlyConfigured(f"Set {name} or {name}_FILE, not both")
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{name}_FILE can't be read: {error}") from None


def env_text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def env_choice(name: str, choices: Collection[str], default: str) -> str:
    """Read one of the words, in any case. Raises ImproperlyConfigured."""
    raw = os.environ.get(name, "").strip() or default
    matches = [choice for choice in choices if choice.lower() == raw.lower()]
    if not matches:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {raw!r}")
    return matches[0]


def env_int(name: str, default: int, *, least: int = 0, most: int = 10**9) -> int:
    """Read an integer within its bounds. Raises ImproperlyConfigured."""
    raw = os.environ.get(name, "").strip() or str(default)
    if not raw.isascii() or not raw.isdigit() or not least <= int(raw) <= most:
        raise ImproperlyConfigured(f"{name} must be an integer from {least} to {most}, not {raw!r}")
    return int(raw)


def env_flag(name: str, default: bool) -> bool:
    """Read a boolean: 1, true, yes, on / 0, false, no, off. Raises ImproperlyConfigured."""
    raw = os.environ.get(name, "").strip().lower()
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False, "": default}
    if raw not in words:
        raise ImproperlyConfigured(f"{name} must be true or false, not {raw!r}")
    return words[raw]


def split_list(text: str) -> list[str]:
    """Return comma-separated words; blank ones are dropped."""
    return [word.strip() for word in text.split(",") if word.strip()]


def env_list(name: str, default: str) -> list[str]:
    return split_list(os.environ.get(name) or default)


DOMAIN = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*")


def hosts_of(url: str) -> str:
    """Return the host of PUBLIC_URL and the names of this machine, as ALLOWED_HOSTS takes them.

    Raises ImproperlyConfigured.
    """
    try:
        host = urlsplit(url).hostname or ""
        host = host if ":" in host else ascii_domain(host)
    except ValueError:
        host = ""
    if not (":" in host or DOMAIN.fullmatch(host)):
        raise ImproperlyConfigured(
            f"PUBLIC_URL must be an address such as https://bookings.example.com, not {url!r}"
        )
    return ",".join([f"[{host}]" if ":" in host else host, "localhost", "127.0.0.1", "[::1]"])


def env_networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Read networks such as `10.0.0.0/8,fd00::/8`; none by default. Raises ImproperlyConfigured."""
    try:
        return [ip_network(word) for word in env_list(name, "")]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be networks such as 10.0.0.0/8: {error}") from None


def env_ports(name: str, default: str) -> list[int]:
    words = env_list(name, default)
    if not all(word.isascii() and word.isdigit() and 1 <= int(word) <= 65535 for word in words):
        raise ImproperlyConfigured(f"{name} must be ports such as {default}, not {words!r}")
    return [int(word) for word in words]


def env_domains(name: str, default: str) -> frozenset[str]:
    """Read domains such as `example.com,bücher.example`, or `*`, in lower case and ASCII.

    Raises ImproperlyConfigured.
    """
    words = env_list(name, default)
    try:
        domains = frozenset(word if word == "*" else ascii_domain(word) for word in words)
    except UnicodeError:
        domains = frozenset()
    if not domains or not all(one == "*" or DOMAIN.fullmatch(one) for one in domains):
        raise ImproperlyConfigured(f"{name} must be domains such as example.com, not {words!r}")
    return domains


def env_address(name: str) -> tuple[str, int] | None:
    """Read `host:port`; None by default. Raises ImproperlyConfigured."""
    raw = os.environ.get(name, "").strip()
    host, _, port = raw.rpartition(":")
    if raw and not (host and port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise ImproperlyConfigured(f"{name} must be an address such as 127.0.0.1:9100, not {raw!r}")
    return (host, int(port)) if raw else None


def env_issuer(name: str) -> str:
    """Read the address of an OpenID Connect issuer: https, or http on this machine; "" by default.

    Raises ImproperlyConfigured.
    """
    raw = os.environ.get(name, "").strip().rstrip("/")
    parts = urlsplit(raw)
    is_local = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    if raw and not (parts.hostname and (parts.scheme == "https" or is_local)):
        raise ImproperlyConfigured(f"{name} must be an https:// address, not {raw!r}")
    return raw


def env_group_roles(name: str) -> list[tuple[str, str, str]]:
    """Read `dentists=harbour:editor; operators=superuser` as (group, app, role); app "": platform.

    Raises ImproperlyConfigured.
    """
    roles = []
    for entry in filter(None, map(str.strip, os.environ.get(name, "").split(";"))):
        group, _, right = map(str.strip, entry.rpartition("="))
        slug, _, role = map(str.strip, right.rpartition(":"))
        is_role = slug and role in ("viewer", "editor", "owner")
        if not group or not (is_role or right == "superuser"):
            raise ImproperlyConfigured(
                f"{name} must be like `group=app:role; group=superuser`, not {entry!r}"
            )
        roles.append((group, slug, role))
    return roles


def env_cells(name: str) -> list[tuple[str, str]]:
    """Read `Europe=https://eu.example.com, Asia=https://asia.example.com` as (name, address).

    Raises ImproperlyConfigured.
    """
    cells = []
    for word in env_list(name, ""):
        label, _, address = map(str.strip, word.rpartition("="))
        if not label or not re.fullmatch(r"https?://[^\s/?#]+/?", address):
            raise ImproperlyConfigured(
                f"{name} must be like `Europe=https://eu.example.com`, not {word!r}"
            )
        cells.append((label, address.rstrip("/")))
    return cells


def local_secret(path: Path) -> str:
    """Return the secret key in the file, which is created once: for a service without settings."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(path, "x", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
            file.write(get_random_secret_key())
    except FileExistsError:
        pass
    return path.read_text().strip()


#: folder for all files that the service writes
#: Default: `var`
VAR_DIR = Path(os.environ.get("VAR_DIR") or BASE_DIR / "var").resolve()
VAR_DIR.mkdir(parents=True, exist_ok=True)

#: never enable it in production
DEBUG = env_flag("DEBUG", False)
#: the public address of the service; `https://` enables secure cookies, redirects and HSTS
#: Default: `http://127.0.0.1:8000`; `./run`: its own address
PUBLIC_URL = env_text("PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")
#: the hosts that requests may name in `Host`, comma-separated; `.example.com` includes subdomains,
#: `*` is any. Another host gets 400. `/healthz`, `/readyz` and `/metrics` answer to any host
#: Default: the host of `PUBLIC_URL`, `localhost`, `127.0.0.1`, `[::1]`; `./run` adds its own
#: address
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", hosts_of(PUBLIC_URL))
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL] if PUBLIC_URL.startswith("https://") else []

# Behind HTTPS (by PUBLIC_URL), cookies and redirects are strict.
HTTPS = PUBLIC_URL.startswith("https://")
#: trust `X-Forwarded-Proto`
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if env_flag("TRUST_PROXY", False) else None
)
SECURE_SSL_REDIRECT = HTTPS
# They answer to any Host, and without HTTPS: probes call a pod by its address.
PROBE_PATHS = ["/healthz", "/readyz", "/metrics"]
SECURE_REDIRECT_EXEMPT = [f"^{path.removeprefix('/')}$" for path in PROBE_PATHS]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
#: with `https://`: browsers refuse plain http for all subdomains of the host too, for a year. Set
#: it only if each of them has https
SECURE_HSTS_INCLUDE_SUBDOMAINS = env_flag("SECURE_HSTS_INCLUDE_SUBDOMAINS", False)
#: with `https://`: allows browsers to ship the domain in their list of https-only domains. Removal
#: from the list takes months
SECURE_HSTS_PRELOAD = env_flag("SECURE_HSTS_PRELOAD", False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_AGE = 8 * 3600  # from the log-in
#: seconds after the last request until a session of the back office ends, 600 to 28,800; every
#: session ends after eight hours
SESSION_IDLE = env_int("SESSION_IDLE", 7200, least=600, most=SESSION_COOKIE_AGE)
X_FRAME_OPTIONS = "DENY"

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",  # before the admin, whose templates it replaces
    "unfold.contrib.filters",
    # Before other packages that have translations: Django takes a text from the first one.
    "bookings",
    "notifications",
    "access",
    "booking_pages",
    "office",
    "office.apps.SiteConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",  # allauth's list of passkeys loads its tags
    "corsheaders",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "simple_history",
    "common",
    "apps_config",
    "availability",
    "external_calendars",
    "ops",
    # After `office`, whose templates replace theirs.
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.idp.oidc",
]

MIDDLEWARE = [
    "common.middleware.RequestIdMiddleware",
    "common.middleware.HostMiddleware",
    "common.middleware.HomeMiddleware",
    "common.middleware.ResponseHeadersMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "common.static_files.StaticFilesMiddleware",
    "common.middleware.PageGZipMiddleware",
    "common.middleware.TrailingSlashMiddleware",
    "common.middleware.DatabaseErrorMiddleware",
    "common.middleware.UnreadableBodyMiddleware",
    "common.middleware.PageSessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "common.middleware.PageAuthenticationMiddleware",
    "common.middleware.PageMessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "office.middleware.OfficeMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
APPEND_SLASH = False

ROOT_URLCONF = "scheduling.urls"
WSGI_APPLICATION = "scheduling.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Templates that replace those of the back office's theme.
        "DIRS": [BASE_DIR / "office" / "theme_templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "office.access.account_pages.office_context",
            ],
        },
    },
]

# --- Monitoring -----------------------------------------------------------------------------------
#: `/metrics` requires `Authorization: Bearer <token>`
#: Default: none: open to all
METRICS_TOKEN = env_secret("METRICS_TOKEN")
#: `host:port` on which a worker serves its own `/metrics`: `0.0.0.0:9100`
WORKER_METRICS_ADDRESS = env_address("WORKER_METRICS_ADDRESS")
# Each process counts in a file of its own here; /metrics adds up the folder. prometheus_client
# reads the variable when it is imported, which is later.
#: folder in which processes count requests and tasks; processes that share it are counted together.
#: Best in memory (`/dev/shm`)
#: Default: `VAR_DIR/metrics`
METRICS_DIR = Path(os.environ.get("METRICS_DIR") or VAR_DIR / "metrics").resolve()
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(METRICS_DIR)
# OpenTelemetry reads its own variables. Without an endpoint it is not even imported.
#: OTEL_EXPORTER_OTLP_ENDPOINT: the OpenTelemetry collector (OTLP over HTTP):
#: `http://collector:4318`. OpenTelemetry's other variables apply too
#: Default: none: no traces

#: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: the collector for traces only, as a complete URL with path
#: Default: none

#: OTEL_SERVICE_NAME: name in traces
#: Default: `scheduling`

#: no traces
TRACING = not env_flag("OTEL_SDK_DISABLED", False) and any(
    os.environ.get(name, "").strip()
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
)
#: SENTRY_ENVIRONMENT: name of this installation in Sentry
#: Default: `production`

#: report errors to Sentry
#: Default: none: no reports
SENTRY_DSN = env_secret("SENTRY_DSN")  # without it, sentry_sdk is not imported

# --- Web, read by gunicorn.conf.py ----------------------------------------------------------------
#: processes of one web node; one or two per core
WEB_PROCESSES = env_int("WEB_PROCESSES", 2, least=1, most=256)
#: threads of each process; each uses a database connection
#: Default: 8; `./run`: 4
WEB_THREADS = env_int("WEB_THREADS", 8, least=1, most=256)
# A proxy that closes first never sends a request on a connection that is just being closed here.
#: seconds that an idle connection stays open; must be more than the idle timeout of the proxy
WEB_KEEPALIVE = env_int("WEB_KEEPALIVE", 75, most=3600)

# --- Database -------------------------------------------------------------------------------------
POSTGRESQL, SQLITE = "django.db.backends.postgresql", "django.db.backends.sqlite3"
# Of every session on PostgreSQL. JIT compilation costs short statements more than it saves.
POSTGRESQL_PARAMETERS = {
    "lock_timeout": "5s",
    "statement_timeout": "15s",
    "idle_in_transaction_session_timeout": "30s",
    "jit": "off",
}
#: `DATABASE_URL` is the address of a pooler in transaction mode
#: ([Connection pooler](#connection-pooler))
DB_POOLED = env_flag("DB_POOLED", False)


def parse_database(name: str, url: str) -> dict[str, Any]:
    """Return Django's settings of the database at the URL, which is the value of `name`.

    Only DATABASE_URL may be SQLite. Raises ImproperlyConfigured.
    """
    database = env.db_url_config(url)
    kinds = {POSTGRESQL: "postgres://"} | ({SQLITE: "sqlite://"} if name == "DATABASE_URL" else {})
    if database["ENGINE"] not in kinds:
        raise ImproperlyConfigured(f"{name} must be a {' or '.join(kinds.values())} address")
    #: the password for `DATABASE_URL`, `DATABASE_DIRECT_URL` and `DATABASE_REPLICA_URL`; any
    #: characters
    #: Default: the password in each URL
    if password := env_secret("DATABASE_PASSWORD"):  # need not be quoted for a URL
        database["PASSWORD"] = password
    return database


def with_postgresql_options(database: dict[str, Any], *, pooled: bool) -> dict[str, Any]:
    """Return the database with the service's options; those of its URL override them.

    Behind a pooler in transaction mode, a session belongs to nobody: its parameters are those of
    the role (`manage.py migrate` sets them), and it has neither prepared statements nor cursors.
    """
    given = database.get("OPTIONS", {})
    parameters = (
        [] if pooled else [f"-c {name}={value}" for name, value in POSTGRESQL_PARAMETERS.items()]
    )
    start_up = " ".join([*parameters, *filter(None, [given.get("options")])])  # the last one wins
    options = {
        # The same few statements all day: with server-side binding they are planned once per
        # connection.
        "server_side_binding": True,
        "prepare_threshold": None if pooled else 5,
        # A server that accepts the connection and never answers must not block a thread for ever.
        "connect_timeout": 5,
    }
    options |= given | ({"options": start_up} if start_up else {})
    defaults = {
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": pooled,
    }
    return defaults | database | {"ENGINE": "common.db.postgresql", "OPTIONS": options}


#: `postgres://user:password@host:5432/name`, `sqlite:///path`
#: Default: SQLite in `VAR_DIR`
DATABASE = parse_database(
    "DATABASE_URL", env_secret("DATABASE_URL") or f"sqlite:///{VAR_DIR / 'db.sqlite3'}"
)
IS_POSTGRESQL = DATABASE["ENGINE"] == POSTGRESQL
if IS_POSTGRESQL:
    DATABASES = {"default": with_postgresql_options(DATABASE, pooled=DB_POOLED)}
    #: PostgreSQL itself, for `migrate` and long jobs; required with `DB_POOLED`
    #: Default: `DATABASE_URL`
    if url := env_secret("DATABASE_DIRECT_URL"):
        direct = parse_database("DATABASE_DIRECT_URL", url)
        DATABASES["direct"] = with_postgresql_options(direct, pooled=False)
    elif DB_POOLED:
        raise ImproperlyConfigured(
            "DB_POOLED needs DATABASE_DIRECT_URL: migrations and long jobs do not use the pooler"
        )
    #: a standby that answers reads ([Read replica](#read-replica))
    if url := env_secret("DATABASE_REPLICA_URL"):
        replica = parse_database("DATABASE_REPLICA_URL", url)
        # The primary can answer instead: no request waits long for a replica.
        brief = {"connect_timeout": 2, "tcp_user_timeout": 3000}
        replica["OPTIONS"] = brief | replica.get("OPTIONS", {})
        DATABASES["replica"] = with_postgresql_options(replica, pooled=DB_POOLED)
else:
    # Without IMMEDIATE, a reader that starts to write fails at once with "database is locked".
    DATABASE["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;",
    }
    # Closing the last connection writes the whole log back: keep connections open between requests.
    DATABASE["CONN_MAX_AGE"] = None
    DATABASES = {"default": DATABASE}
    if DB_POOLED:
        raise ImproperlyConfigured("DB_POOLED needs PostgreSQL: set DATABASE_URL")
SILENCED_SYSTEM_CHECKS = [
    "models.W040",  # SQLite ignores the included columns of covering indexes: slower, but correct
    "security.W005",  # SECURE_HSTS_INCLUDE_SUBDOMAINS and SECURE_HSTS_PRELOAD: the operator decides
    "security.W021",
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The home of apps and accounts that are created here: a part of their ids, keys and rows, for ever.
#: the number of this database in new ids and keys ([Homes](scaling.md#homes))
HOME_NUMBER = env_int("HOME_NUMBER", 0, most=255)

# --- Secrets --------------------------------------------------------------------------------------
#: 32 characters or more, the same for all processes
#: Default: SQLite: created once in `VAR_DIR`; PostgreSQL: required
SECRET_KEY = env_secret("SECRET_KEY")
if not SECRET_KEY:
    # There is no default key. Processes on one machine share a random one in var/; processes that
    # share no folder must be given one.
    #: require `SECRET_KEY` with SQLite too (compose sets this)
    if env_flag("REQUIRE_SECRET_KEY", False):
        raise ImproperlyConfigured("SECRET_KEY must be set")
    if IS_POSTGRESQL:
        raise ImproperlyConfigured(
            "SECRET_KEY must be set: with PostgreSQL, processes on several machines need the same"
            f" key. If this machine served it before, use the key in {VAR_DIR / 'secret_key'}."
        )
    SECRET_KEY = local_secret(VAR_DIR / "secret_key")
if len(SECRET_KEY) < 32:
    raise ImproperlyConfigured("SECRET_KEY must have at least 32 characters")
#: earlier values of `SECRET_KEY`, 32 characters or more each, comma-separated: what was signed with
#: them stays valid ([Rotating SECRET_KEY](#rotating-secret_key))
SECRET_KEY_FALLBACKS = split_list(env_secret("SECRET_KEY_FALLBACKS"))
if any(len(key) < 32 for key in SECRET_KEY_FALLBACKS):
    raise ImproperlyConfigured("SECRET_KEY_FALLBACKS must have at least 32 characters each")
#: encrypt the secrets of webhooks and the addresses and passwords of connected calendars; 32
#: characters or more each, comma-separated; the first key encrypts, all keys decrypt
#: Default: `SECRET_KEY`, `SECRET_KEY_FALLBACKS`
ENCRYPTION_KEYS = split_list(env_secret("ENCRYPTION_KEYS")) or [SECRET_KEY, *SECRET_KEY_FALLBACKS]
if any(len(key) < 32 for key in ENCRYPTION_KEYS):
    raise ImproperlyConfigured("ENCRYPTION_KEYS must have at least 32 characters each")

# --- Accounts -------------------------------------------------------------------------------------
AUTH_USER_MODEL = "apps_config.Account"
LOGIN_URL = "/admin/login/"
LOGIN_REDIRECT_URL = "/admin/"
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "access.password_changes.EndLogIns"},
]

# --- Log-in of staff ------------------------------------------------------------------------------
#: wrong passwords per network and hour ([Wrong passwords](#wrong-passwords)); 0 = no limits of
#: wrong passwords at all
FAILED_PASSWORDS_PER_HOUR = env_int("FAILED_PASSWORDS_PER_HOUR", 30)
#: false: accounts log in with the provider or a passkey only; needs `OIDC_ISSUER`
PASSWORD_LOGIN = env_flag("PASSWORD_LOGIN", True)
#: who must have a second factor: `off`, `staff` (platform staff) or `owners` (staff and owners of
#: an app)
REQUIRE_SECOND_FACTOR = env_choice("REQUIRE_SECOND_FACTOR", ("off", "staff", "owners"), "off")
#: address of an OpenID Connect provider, https; none = off ([log-in of staff](#log-in-of-staff))
OIDC_ISSUER = env_issuer("OIDC_ISSUER")
#: the button reads "Log in with ..."
OIDC_NAME = env_text("OIDC_NAME", "single sign-on")
#: name of this service at the provider; required with `OIDC_ISSUER`
OIDC_CLIENT_ID = env_text("OIDC_CLIENT_ID")
#: the secret of `OIDC_CLIENT_ID`; none for a public client
OIDC_CLIENT_SECRET = env_secret("OIDC_CLIENT_SECRET")
#: claim with the person's groups; `realm_access.roles` reads a nested one
OIDC_GROUPS_CLAIM = env_text("OIDC_GROUPS_CLAIM", "groups")
#: the role of each group: `dentists=harbour:editor; operators=superuser`
OIDC_ROLES = env_group_roles("OIDC_ROLES")
#: accept addresses without the claim `email_verified`, for providers that never send it and have
#: verified all addresses
OIDC_TRUST_EMAIL = env_flag("OIDC_TRUST_EMAIL", False)
#: requested scopes
OIDC_SCOPES = env_list("OIDC_SCOPES", "openid,profile,email")
if OIDC_ISSUER and not OIDC_CLIENT_ID:
    raise ImproperlyConfigured("OIDC_ISSUER also needs OIDC_CLIENT_ID")
if not PASSWORD_LOGIN and not OIDC_ISSUER:
    raise ImproperlyConfigured("PASSWORD_LOGIN=off needs OIDC_ISSUER: nobody could log in")
# Subjects are unique per issuer only.
OIDC_PROVIDER_ID = f"oidc-{hashlib.sha256(OIDC_ISSUER.encode()).hexdigest()[:16]}"
SOCIALACCOUNT_PROVIDERS = {
    "oidc": {
        "OAUTH_PKCE_ENABLED": True,
        "SCOPE": OIDC_SCOPES,
        "APPS": [
            {
                "provider_id": OIDC_PROVIDER_ID,
                "name": OIDC_NAME,
                "client_id": OIDC_CLIENT_ID,
                "secret": OIDC_CLIENT_SECRET,
                "settings": {"server_url": OIDC_ISSUER},
            }
        ],
    }
}
SOCIALACCOUNT_ADAPTER = "office.access.sign_in.OidcAccountAdapter"
# A link instead of a form: the Content-Security-Policy lets forms go to this service only.
SOCIALACCOUNT_LOGIN_ON_GET = True
ACCOUNT_ADAPTER = "office.access.sign_in.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if HTTPS else "http"
# allauth counts in a cache of each process; `log_in_limits` and `count_failed_code` count in the
# database.
ACCOUNT_RATE_LIMITS = False
MFA_RATE_LIMITS = False
MFA_ADAPTER = "office.access.sign_in.SecondFactorAdapter"
MFA_FORMS = {
    "add_webauthn": "office.access.sign_in.AddPasskeyForm",
    "authenticate": "office.access.sign_in.CodeForm",
    "reauthenticate": "office.access.sign_in.ConfirmingCodeForm",
    "login_webauthn": "office.access.sign_in.PasskeyLogInForm",
    "authenticate_webauthn": "office.access.sign_in.PasskeyForm",
    "reauthenticate_webauthn": "office.access.sign_in.ConfirmingPasskeyForm",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_TOTP_TOLERANCE = 1  # clocks of phones are seconds off
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not HTTPS  # http://localhost

# --- Log-in of programs ---------------------------------------------------------------------------
#: true: programs of members, such as AI assistants, log in with OAuth
#: ([Programs of members](#programs-of-members))
OAUTH_SERVER = env_flag("OAUTH_SERVER", False)
IDP_OIDC_AUTH_METHODS = ["none"]  # public clients only
IDP_OIDC_REFRESH_TOKEN_EXPIRES_IN = 30 * 86400
# allauth stores authorization codes and used codes of second factors in it.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "apps_config_cacheentry",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    }
}

# --- The back office ------------------------------------------------------------------------------
#: the cells, for links between their back offices: `Europe=https://eu.example.com, Asia=https://...`
#: ([Cells](scaling.md#cells))
CELLS = env_cells("CELLS")
UNFOLD = {
    "SITE_TITLE": "office.navigation.site_title",
    "SITE_HEADER": "office.navigation.site_header",
    "SITE_SYMBOL": "calendar_month",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": "office.navigation.favicon"},
    ],
    "SITE_URL": None,
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "BORDER_RADIUS": "8px",
    "STYLES": ["office.navigation.stylesheet"],
    "SCRIPTS": [
        "office.navigation.words_script_url",
        "office.navigation.theme_script_url",
        "office.navigation.keys_script_url",
    ],
    "SHOW_LANGUAGES": "office.base.languages.has_languages",
    "LANGUAGES": {"navigation": "office.base.languages.menu_languages"},
    "LOGIN": {"form": "office.access.log_in.LogInForm"},
    "ACCOUNT": {"navigation": "office.navigation.account_links"},
    "SIDEBAR": {
        "navigation": "office.navigation.sidebar",
        "show_search": True,
        "command_search": True,
    },
    "DASHBOARD_CALLBACK": None,
}

# --- The API --------------------------------------------------------------------------------------
# Service-App also works as Timekit-App: existing clients of that API need no change.
#: prefixes of the API's own headers
API_HEADER_PREFIXES = env_list("API_HEADER_PREFIXES", "Service,Timekit")
#: requests per key and minute; for a widget key and without a key, per client address; 0 = off.
#: With `REDIS_URL` over all web processes, else per process ([Rates](#rates))
RATE_LIMIT_PER_MINUTE = env_int("RATE_LIMIT_PER_MINUTE", 6000)
#: requests with a wrong key per network (an IPv6 client's /64) and minute, over all processes;
#: above this number, they get 429; requests with a valid key still work; 0 = off
FAILED_LOGINS_PER_MINUTE = env_int("FAILED_LOGINS_PER_MINUTE", 10)
#: number of trusted hops in `X-Forwarded-For`, for rate limits, wrong passwords and the limits of
#: public pages ([Proxies](#proxies))
TRUSTED_PROXIES = env_int("TRUSTED_PROXIES", 0, most=10)

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["apps_config.authentication.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [
        "apps_config.permissions.OriginPermission",
        "apps_config.permissions.AddressPermission",
        "apps_config.permissions.KeyPermission",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["apps_config.throttling.KeyThrottle"],
    "DEFAULT_FILTER_BACKENDS": [
        "common.api.filter_backends.SearchBackend",
        "common.api.filter_backends.FilterSetBackend",
        "common.api.filter_backends.ChangedSinceBackend",
        "common.api.filter_backends.OrderBackend",
    ],
    "DEFAULT_PAGINATION_CLASS": "apps_config.pagination.EnvelopePagination",
    "DEFAULT_PARSER_CLASSES": ["common.api.json.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["common.api.json.JSONRenderer"],
    "EXCEPTION_HANDLER": "common.errors.exception_response",
    "DEFAULT_SCHEMA_CLASS": "common.openapi.generator.Schema",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
    "URL_FORMAT_OVERRIDE": None,
}

CORS_ALLOW_ALL_ORIGINS = True
CORS_ALLOW_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
# The wildcard of the Fetch standard does not cover Authorization.
CORS_ALLOW_HEADERS = ["authorization", "*"]
CORS_URLS_REGEX = r"^/v2(/|$)"
CORS_EXPOSE_HEADERS = [
    *(f"{prefix}-TestMode" for prefix in API_HEADER_PREFIXES),
    "Service-Request-Id",
    "RateLimit",
    "RateLimit-Policy",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "Retry-After",
    "Idempotent-Replayed",
    "Service-Complete-Until",
    "Service-Ignored",
    "ETag",
]

# --- Celery ---------------------------------------------------------------------------------------
# Counters and positions of all processes; the broker too, unless MESSAGE_BROKER_URL names another.
#: `redis://host:6379/0`, `rediss://host:6380/0`
#: ([Redis and other brokers](#redis-and-other-brokers))
REDIS_URL = env_secret("REDIS_URL")
if REDIS_URL:
    REDIS_URL = parse_redis_url("REDIS_URL", REDIS_URL)
if "BROKER_URL" in os.environ:  # the workers would use it unchecked, and web would not
    raise ImproperlyConfigured("Set MESSAGE_BROKER_URL instead of BROKER_URL, a variable of Celery")
#: the broker of wake-ups and tasks, if it is not the Redis of `REDIS_URL`
#: Default: `REDIS_URL`; without it, files in `VAR_DIR`
MESSAGE_BROKER_URL = env_secret("MESSAGE_BROKER_URL") or REDIS_URL
if MESSAGE_BROKER_URL:
    broker = parse_broker_url("MESSAGE_BROKER_URL", MESSAGE_BROKER_URL)
    CELERY_BROKER_URL = broker.url
    CELERY_BROKER_TRANSPORT_OPTIONS = broker.transport_options
    CELERY_BROKER_USE_SSL = broker.use_ssl
else:
    QUEUE_DIR = VAR_DIR / "queue"
    for folder in ("messages", "control"):
        (QUEUE_DIR / folder).mkdir(parents=True, exist_ok=True)
    CELERY_BROKER_URL = "filesystem://localhost"
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(QUEUE_DIR / "messages"),
        "data_folder_out": str(QUEUE_DIR / "messages"),
        "control_folder": str(QUEUE_DIR / "control"),
        "polling_interval": 0.2,
    }
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
# A worker consumes all queues unless `-Q` narrows them.
CELERY_TASK_QUEUES = {
    name: {"exchange": name} for name in ("celery", "email", "webhook", "calendar")
}
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_TIME_LIMIT = 60
CELERY_TASK_SOFT_TIME_LIMIT = 45
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_ENABLE_UTC = True
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "celerybeat-schedule")
# Connections are kept between tasks: a dispatcher runs every second and would reconnect each time.
CELERY_DB_REUSE_MAX = 1000
CELERY_BEAT_SCHEDULE = {
    **{
        f"send-{kind}": {
            "task": "notifications.tasks.dispatch_deliveries",
            "args": [kind],
            "schedule": 1.0,
            "options": {"queue": kind, "expires": 2},
        }
        for kind in ("email", "webhook", "calendar")
    },
    "look-at-calendars": {
        "task": "external_calendars.tasks.sync_calendars",
        "schedule": 5.0,
        "options": {"queue": "calendar", "expires": 5},
    },
    "complete-bookings": {
        "task": "bookings.tasks.complete_ended_bookings",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
    "time-out-payments": {
        "task": "bookings.tasks.time_out_payments",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
    "mark-beat": {
        "task": "notifications.tasks.record_heartbeat",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
    "start-overdue-tasks": {
        "task": "notifications.tasks.start_overdue_periodic_tasks",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
}
# Daily (UTC) and hourly tasks, with their queues: task -> (time, queue).
PERIODIC_TASKS = {
    "apps_config.tasks.purge_sessions_and_security_events": ("02:17", "celery"),
    "external_calendars.tasks.advance_sync_windows": ("02:47", "calendar"),
    "bookings.tasks.purge_postponed_tasks": ("02:57", "celery"),
    "apps_config.tasks.purge_old_changes": ("03:07", "celery"),
    "notifications.tasks.purge_deliveries": ("03:17", "celery"),
    "notifications.tasks.purge_people": ("03:47", "celery"),
    "notifications.tasks.check_deliveries": ("04:47", "celery"),
    "apps_config.tasks.purge_idempotency_records": (":07", "celery"),
    "bookings.tasks.count_bookings_per_day": (":17", "celery"),
    "availability.tasks.purge_holds": (":27", "celery"),
    "bookings.tasks.purge_unverified_bookings": (":47", "celery"),
}

# --- Deliveries -----------------------------------------------------------------------------------
#: e-mails or calls that one task sends at once
DELIVERY_THREADS = env_int("DELIVERY_THREADS", 16, least=1, most=512)
#: concurrent calls to one server (scheme, host, port), over all workers; 2 for a slow or failing
#: server
#: Default: half of the threads
DELIVERY_ENDPOINT_CAP = env_int(
    "DELIVERY_ENDPOINT_CAP", max(1, DELIVERY_THREADS // 2), least=1, most=10_000
)
#: concurrent e-mails, and concurrent calls, of one app, over all workers
DELIVERY_APP_CAP = env_int("DELIVERY_APP_CAP", 64, least=1, most=100_000)
#: the largest value of an app's own setting `delivery_cap`
#: Default: `DELIVERY_APP_CAP`
DELIVERY_APP_CAP_MAX = env_int(
    "DELIVERY_APP_CAP_MAX", DELIVERY_APP_CAP, least=DELIVERY_APP_CAP, most=100_000
)
#: finished deliveries are deleted with their attempts after this many days; deliveries of bookings
#: that have not yet taken place stay
DELIVERY_RETENTION_DAYS = env_int("DELIVERY_RETENTION_DAYS", 30, least=1, most=36_500)
#: what an e-mail said can be read in the back office for so many days after it was sent, without
#: its personal links; 0: it is not stored
SENT_EMAIL_RETENTION_DAYS = env_int("SENT_EMAIL_RETENTION_DAYS", 30, most=30)

# --- Payments -------------------------------------------------------------------------------------
#: seconds until a booking without payment becomes `unpaid`; checked every 5 seconds
PAYMENT_TIMEOUT = env_int("PAYMENT_TIMEOUT", 300, least=1, most=31_536_000)

# --- People's data --------------------------------------------------------------------------------
#: customers' data is erased this many days after the end of their bookings; the bookings stay
#: Default: 0: never
PEOPLE_RETENTION_DAYS = env_int("PEOPLE_RETENTION_DAYS", 0, most=36_500)

# --- E-mail ---------------------------------------------------------------------------------------
#: `smtp+tls://user:password@host:587`
#: Default: e-mails as files in `VAR_DIR/outbox`
EMAIL_URL = env_secret("EMAIL_URL")
if EMAIL_URL:
    globals().update(env.email_url_config(EMAIL_URL))
else:
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = str(VAR_DIR / "outbox")
if EMAIL_BACKEND == "django.core.mail.backends.smtp.EmailBackend":
    EMAIL_BACKEND = "notifications.mail.smtp_backend.SmtpBackend"
# Seconds: to connect, for the answer to a command, for the answer to a whole e-mail, and for all of
# them together. RFC 5321, 4.5.3.2.
EMAIL_TIMEOUT, EMAIL_COMMAND_TIMEOUT, EMAIL_MESSAGE_TIMEOUT = 10, 30, 120
EMAIL_DEADLINE = 60 + EMAIL_MESSAGE_TIMEOUT
#: sender for apps without their own; the domain must authorise the mail server (SPF, DKIM)
DEFAULT_FROM_EMAIL = env_text("DEFAULT_FROM_EMAIL", "bookings@localhost")
#: domains, without their subdomains, from whose addresses apps may send, such as
#: `example.com,example.org`; `*`: any
#: ([Senders](#senders))
#: Default: the domain of `DEFAULT_FROM_EMAIL`
SENDER_DOMAINS = env_domains("SENDER_DOMAINS", parseaddr(DEFAULT_FROM_EMAIL)[1].rpartition("@")[2])
#: name of your mail server in the `Authentication-Results` headers of incoming e-mails. A declined
#: invitation can cancel the booking only if this header verifies the sender
#: ([Incoming e-mails](#incoming-e-mails))
#: Default: none, answers by e-mail cancel nothing
MAIL_AUTHSERV_ID = env_text("MAIL_AUTHSERV_ID", "")

# --- Outbound calls -------------------------------------------------------------------------------
#: private networks in which webhooks and connected calendars are allowed, on any port:
#: `10.0.0.0/8,fd00::/8`
#: Default: none; `./run`: this machine
WEBHOOK_ALLOWED_NETWORKS = env_networks("WEBHOOK_ALLOWED_NETWORKS")
#: ports allowed for webhooks and connected calendars on public servers
WEBHOOK_PORTS = env_ports("WEBHOOK_PORTS", "80,443,8443")
#: refuse webhooks and calendars over plain http
#: Default: true if `PUBLIC_URL` is https
WEBHOOK_HTTPS_ONLY = env_flag("WEBHOOK_HTTPS_ONLY", HTTPS)

# --- External calendars ---------------------------------------------------------------------------
#: seconds between syncs of each connected calendar
CALENDAR_SYNC_SECONDS = env_int("CALENDAR_SYNC_SECONDS", 300, least=10, most=86_400)
#: seconds without a sync after which a calendar is reported as stale; more than
#: `CALENDAR_SYNC_SECONDS`
CALENDAR_STALE_SECONDS = env_int("CALENDAR_STALE_SECONDS", 3600, least=60, most=31_536_000)
#: calendars that one worker syncs at once; each uses a database connection
CALENDAR_THREADS = env_int("CALENDAR_THREADS", 8, least=1, most=128)
#: the client that is registered at Google for all apps without one of their own
GOOGLE_CLIENT_ID = env_text("GOOGLE_CLIENT_ID")
#: the secret of `GOOGLE_CLIENT_ID`
GOOGLE_CLIENT_SECRET = env_secret("GOOGLE_CLIENT_SECRET")
#: the same at Microsoft (Entra ID)
MICROSOFT_CLIENT_ID = env_text("MICROSOFT_CLIENT_ID")
#: the secret of `MICROSOFT_CLIENT_ID`
MICROSOFT_CLIENT_SECRET = env_secret("MICROSOFT_CLIENT_SECRET")
#: a gateway in front of Google and Microsoft, which is called at `<gateway>/host/path` instead of
#: `https://host/path`
CALENDAR_PROVIDER_GATEWAY = env_text("CALENDAR_PROVIDER_GATEWAY").rstrip("/")

# --- Time, language, files, logs ------------------------------------------------------------------
LANGUAGE_CODE = "en"
# What a person chose for the back office.
LANGUAGE_COOKIE_NAME = "office_language"
LANGUAGE_COOKIE_PATH = "/admin/"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_SECURE = HTTPS
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "office.formats"
USE_TZ = True
STATIC_URL = "/static/"
#: static files after `collectstatic`, which also compresses them
#: Default: `VAR_DIR/static`
STATIC_ROOT = Path(os.environ.get("STATIC_ROOT") or VAR_DIR / "static").resolve()
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # WhiteNoise warns about a folder that is missing
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "common.static_files.CompressedFiles"},
}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
#: the documentation's site, as `scripts/docs` builds it; web has it at `/docs/guide/`
#: Default: `VAR_DIR/docs`
DOCS_ROOT = Path(os.environ.get("DOCS_ROOT") or VAR_DIR / "docs").resolve()

#: `DEBUG`, `INFO`, `WARNING` or `ERROR`
LOG_LEVEL = env_choice("LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR"), "INFO")
#: `plain` or `json` ([Logs](#logs))
LOG_FORMAT = env_choice("LOG_FORMAT", log_format.FORMATS, "plain")
LOGGING = log_format.logging_settings(LOG_LEVEL, LOG_FORMAT)

SPECTACULAR_SETTINGS = {
    "TITLE": "Scheduling and booking service",
    "DESCRIPTION": (BASE_DIR / "common" / "openapi" / "description.md").read_text("utf-8"),
    "VERSION": VERSION,
    "LICENSE": {"name": "AGPL-3.0-or-later", "identifier": "AGPL-3.0-or-later"},
    "CONTACT": {"name": "Scheduling and booking service"},
    # The first is the one that the API reference calls, on whichever origin it is open.
    "SERVERS": [{"url": url} for url in ("/", PUBLIC_URL) if url],
    "OAS_VERSION": "3.1.1",
    "COMPONENT_SPLIT_PATCH": False,  # PATCH is another name of PUT
    "TAGS": [
        {"name": "apps", "description": "The tenant, its settings and reminders."},
        {"name": "members", "description": "People who may use an app, and their roles."},
        {"name": "credentials", "description": "Keys and log-in with a password."},
        {
            "name": "resources",
            "description": "People and things that can be booked. Every path also works as"
            " /v2/users, its older name.",
        },
        {"name": "schedules", "description": "Opening hours that several resources share."},
        {"name": "calendars", "description": "Lists of events of a resource."},
        {"name": "events", "description": "Times in a calendar; busy events block."},
        {"name": "projects", "description": "Bookable services."},
        {"name": "availability", "description": "Free time, and why time is not free."},
        {"name": "bookings", "description": "Agreements that move through the states of a graph."},
        {"name": "customers", "description": "The people who book, and their data."},
        {"name": "reports", "description": "Numbers of bookings, by day."},
        {"name": "webhooks", "description": "Subscriptions to changes of bookings."},
        {"name": "changes", "description": "Every change of an app, once and in order."},
        {"name": "deliveries", "description": "The log of e-mails and calls, with every attempt."},
        {"name": "templates", "description": "E-mail templates."},
        {"name": "findtime", "description": "The earlier form of /v2/availability."},
        {"name": "service", "description": "The service itself. Needs no key."},
    ],
    "ENFORCE_NON_BLANK_FIELDS": True,
    # Docstrings are for readers of the code.
    "DISABLE_DOCSTRING_DESCRIPTIONS": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "POSTPROCESSING_HOOKS": [
        "notifications.webhooks.description.describe_calls",
        "common.openapi.generator.complete_document",
    ],
}
