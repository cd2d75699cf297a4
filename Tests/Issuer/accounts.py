"""The user and the clients that the issuer knows."""

USER, PASSWORD, EMAIL = "ada", "correct horse battery staple", "ada@example.com"
# The first user of a database.
SUBJECT = "1"
API = "https://api.example"
# HTTP Basic separates with the first, and form encoding changes all of them. HS256 needs 32 bytes.
SECRET = "a:b%2F c+d/é=& and enough for an HMAC"


def clients(origin):
    """All clients. :param origin: that of the gateway, whose callbacks some of them have."""

    def one(name, redirect_uri="http://localhost:1/callback", is_trusted=True, algorithm="RS256"):
        return {
            "id": name, "secret": f"{name} {SECRET}", "redirect_uri": redirect_uri, "is_trusted": is_trusted,
            "algorithm": algorithm}

    website, profile = (one(name, f"{origin}/auth/callback/{name}", is_trusted=False) for name in ("website", "profile"))
    hmac = one("hmac", algorithm="HS256")
    return {client["id"]: client for client in (one("app"), one("other"), hmac, one("jwt"), one("gateway"), website, profile)}
