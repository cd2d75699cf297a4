"""Serves an issuer: django-oauth-toolkit with its own pages, endpoints and database. It has to import what
`requirements.txt` names, so `issuer.py` starts it.

    serve.py SETTINGS      a JSON file: port, folder, clients, keys (the first one signs), token_seconds
"""

import json
import pathlib
import sys

sys.dont_write_bytecode = True

import django
from django.conf import settings

import tokens
from accounts import EMAIL, PASSWORD, USER

# Its path is a part of the issuer's name, as it is where an issuer has several tenants.
PREFIX = "o"
LOGIN_PAGE = """<!DOCTYPE html><title>Log in</title><form method="post">{% csrf_token %}{{ form.as_p }}
<input type="hidden" name="next" value="{{ next }}"><button>Log in</button></form>"""


def configure(wanted):
    """Django's settings; the other values are the defaults of both packages."""
    folder = pathlib.Path(wanted["folder"])
    keys = [pathlib.Path(key).read_text() for key in wanted["keys"]]
    issuer = f"http://localhost:{wanted['port']}/{PREFIX}"
    settings.configure(
        SECRET_KEY="of a test", ALLOWED_HOSTS=["localhost"], ROOT_URLCONF="serve", USE_TZ=True, LOGIN_URL="/login",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "issuer.sqlite"}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", STATIC_URL="/static/",
        # The passwords are those of a test: a slow hash would only cost time.
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        INSTALLED_APPS=[
            "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.staticfiles",
            "oauth2_provider"],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware", "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware"],
        TEMPLATES=[{
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {
                "context_processors": ["django.template.context_processors.request"],
                "loaders": [
                    ("django.template.loaders.locmem.Loader", {"registration/login.html": LOGIN_PAGE}),
                    "django.template.loaders.app_directories.Loader"],
            }}],
        LOGGING={
            "version": 1, "disable_existing_loggers": False, "root": {"level": "INFO", "handlers": ["console"]},
            "handlers": {"console": {"class": "logging.StreamHandler"}}},
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True, "OIDC_RSA_PRIVATE_KEY": keys[0], "OIDC_RSA_PRIVATE_KEYS_INACTIVE": keys[1:],
            "ID_TOKEN_EXPIRE_SECONDS": wanted["token_seconds"], "ACCESS_TOKEN_EXPIRE_SECONDS": wanted["token_seconds"],
            "SCOPES": {one: one for one in ("openid", "profile", "email", "read")},
            "OAUTH2_VALIDATOR_CLASS": "claims.Claims",
            "EXTRA_SERVER_KWARGS": {"token_generator": tokens.Generator(issuer, keys[0], wanted["token_seconds"])},
            # As RFC 9700 recommends, with `iss` in responses to browsers.
            **{f"COMPLIANT_BCP_RFC9700_{one}": True for one in (
                "IMPLICIT_GRANT", "PASSWORD_GRANT", "PKCE_METHOD", "ACCESS_TOKEN_TRANSPORT", "AUTHZ_RESPONSE_ISS")},
        })


def fill(clients):
    """The database of a first start."""
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from oauth2_provider.models import Application

    call_command("migrate", verbosity=0)
    if User.objects.exists():
        return
    User.objects.create_user(USER, EMAIL, PASSWORD, first_name="Ada", last_name="Lovelace")
    for client in clients:
        Application.objects.create(
            name=client["id"], client_id=client["id"], client_secret=client["secret"], hash_client_secret=False,
            client_type=Application.CLIENT_CONFIDENTIAL, authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
            algorithm=client["algorithm"], redirect_uris=client["redirect_uri"],
            skip_authorization=client["is_trusted"])


def urls():
    from django.contrib.auth.views import LoginView
    from django.urls import include, path

    return [path("login", LoginView.as_view()), path(f"{PREFIX}/", include("oauth2_provider.urls"))]


def main():
    wanted = json.loads(pathlib.Path(sys.argv[1]).read_text())
    # Django finds the URLs by the name of a module.
    sys.modules["serve"] = sys.modules["__main__"]
    configure(wanted)
    django.setup()
    global urlpatterns
    urlpatterns = urls()
    fill(wanted["clients"])

    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application

    server = ThreadedWSGIServer(("127.0.0.1", wanted["port"]), WSGIRequestHandler)
    server.set_app(get_wsgi_application())
    print("serving", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
