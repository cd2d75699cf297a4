"""The access tokens of the issuer: opaque ones, or those of RFC 9068."""

import time

from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from joserfc.jwk import KeySet, RSAKey
from oauthlib.common import generate_token

OPAQUE_PREFIX = "opq_"
# The client whose access tokens are those of RFC 9068.
JWT_CLIENT = "jwt"


class Generator:
    """Makes each access token; those of RFC 9068 are made by Authlib."""

    def __init__(self, issuer, key, seconds):
        self.issuer, self.key, self.seconds = issuer, RSAKey.import_key(key), seconds
        self.key.ensure_kid()

    def __call__(self, request, refresh_token=False):
        if refresh_token or request.client.client_id != JWT_CLIENT:
            return OPAQUE_PREFIX + generate_token()
        made = AccessTokens(self, request.resource)
        return made.access_token_generator(_Client(request.client), request.grant_type, _User(request.user), " ".join(request.scopes))


class AccessTokens(JWTBearerTokenGenerator):
    def __init__(self, generator, audiences):
        super().__init__(generator.issuer, expires_generator=lambda *_: generator.seconds)
        self.key, self.audiences = generator.key, audiences

    def get_jwks(self):
        return KeySet([self.key])

    def get_audiences(self, client, user, scope):
        return self.audiences

    def get_auth_time(self, user):
        return int(user.last_login.timestamp() if user.last_login else time.time())


class _Client:
    """A client as Authlib wants it."""

    def __init__(self, client):
        self.client_id = client.client_id

    def get_client_id(self):
        return self.client_id


class _User:
    def __init__(self, user):
        self.id, self.last_login = user.pk, user.last_login

    def get_user_id(self):
        return self.id
