"""Signs in with a client that was generated from the description of a gateway: sign_in.py GATEWAY PASSWORD."""

import sys

from generated.api.account import reauthenticate
from generated.api.login import login_password, refresh
from generated.api.sessions import session, sessions
from generated.client import AuthenticatedClient, Client
from generated.models import PasswordLogin, Problem, Reauthentication, Refresh, Tokens

gateway, password = sys.argv[1:]
client = Client(base_url=f"{gateway}/auth")


def show(what, *values):
    print(f"{what}: {' '.join(map(str, values))}")


tokens = login_password.sync(client=client, body=PasswordLogin(username="ada", password=password))
assert isinstance(tokens, Tokens), tokens
show("signed in", tokens.subject, tokens.token_type)
tokens = refresh.sync(client=client, body=Refresh(refresh_token=tokens.refresh_token))
assert isinstance(tokens, Tokens), tokens
known = AuthenticatedClient(base_url=f"{gateway}/auth", token=tokens.access_token)
show("session", session.sync(client=known).subject)
show("sessions", *(one.current for one in sessions.sync(client=known).sessions))
again = Reauthentication(provider="password", username="ada", password=password)
show("again", reauthenticate.sync(client=known, body=again).session_id)
rejected = login_password.sync(client=client, body=PasswordLogin(username="ada", password="wrong"))
assert isinstance(rejected, Problem), rejected
show("rejected", rejected.status, rejected.code)
