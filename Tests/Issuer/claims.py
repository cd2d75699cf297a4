"""What the issuer says about a user."""

from oauth2_provider.oauth2_validators import OAuth2Validator


class Claims(OAuth2Validator):
    """An ID token has the name of the user; e-mail address and full name are at the userinfo endpoint alone."""

    def get_additional_claims(self, request):
        return {"preferred_username": request.user.get_username()}

    def get_userinfo_claims(self, request):
        user = request.user
        own = {"email": user.email, "email_verified": True, "name": user.get_full_name(), "acr": "of userinfo"}
        return super().get_userinfo_claims(request) | own
