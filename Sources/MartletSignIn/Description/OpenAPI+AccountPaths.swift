/// The endpoints for the caller's account, and for what issuers say about it.
extension OpenAPI {
    /// The account, its identities and its password.
    static let accountPaths = #"""
        {
          "/account": {
            "get": {
              "tags": ["Account"],
              "operationId": "account",
              "summary": "Get the caller's account with the states of its identities",
              "security": [{"session": []}, {"cookie": []}],
              "responses": ["Account", "Unauthorized", "NotFound", "TooLarge", "Unavailable"]
            },
            "delete": {
              "tags": ["Account"],
              "operationId": "deleteAccount",
              "summary": "Delete the caller's account",
              "security": [{"session": []}, {"cookie": []}],
              "description": "Needs a proof of the last 10 minutes: the session's, or one in the body.",
              "requestBody": {
                "required": false,
                "content": {
                  "application/json": {"schema": {"$ref": "#/components/schemas/Reauthentication"}},
                  "application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/Reauthentication"}}
                }
              },
              "responses": [
                "Accepted", "Malformed", "Unauthorized", "NotAllowed", "NotFound", "TooLarge", "UnsupportedMediaType",
                "Throttled", "Unavailable"
              ]
            }
          },
          "/profile": {
            "patch": {
              "tags": ["Account"],
              "operationId": "changeProfile",
              "summary": "Change what the caller says of themselves",
              "security": [{"session": []}, {"cookie": []}],
              "description": "Requires an account store. `null` removes a member; any other member is rejected.",
              "requestBody": {
                "required": true,
                "content": {
                  "application/json": {
                    "schema": {"$ref": "#/components/schemas/Profile"},
                    "example": {"name": "Anna Bauer", "locale": null}
                  },
                  "application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/Profile"}}
                }
              },
              "responses": [
                "Profile", "Malformed", "Unauthorized", "NotFound", "TooLarge", "UnsupportedMediaType", "Throttled",
                "Unavailable"
              ]
            }
          },
          "/identities": {
            "get": {
              "tags": ["Account"],
              "operationId": "identities",
              "summary": "List the identities of the caller's account, the oldest first",
              "security": [{"session": []}, {"cookie": []}],
              "responses": ["Identities", "Unauthorized", "TooLarge", "Unavailable"]
            }
          },
          "/link/{provider}": {
            "parameters": [{"$ref": "#/components/parameters/Provider"}],
            "post": {
              "tags": ["Account"],
              "summary": "Link an identity to the caller's account",
              "security": [{"session": []}, {"cookie": []}],
              "description": "Requires an account store. Idempotent.",
              "responses": [
                "Done", "Malformed", "Unauthorized", "NotAllowed", "NotFound", "Conflict", "TooLarge",
                "UnsupportedMediaType", "Throttled", "Unavailable"
              ]
            },
            "delete": {
              "tags": ["Account"],
              "operationId": "unlink",
              "summary": "Unlink an identity from the caller's account",
              "security": [{"session": []}, {"cookie": []}],
              "description": "Ends the sessions that the identity created. The last identity cannot be unlinked.",
              "responses": ["Done", "Malformed", "Unauthorized", "NotFound", "Conflict", "TooLarge", "Unavailable"]
            }
          },
          "/reauthenticate": {
            "post": {
              "tags": ["Account"],
              "operationId": "reauthenticate",
              "summary": "Authenticate again, for routes that require a recent or a stronger authentication",
              "security": [{"session": []}, {"cookie": []}],
              "description": "Renews the proof of the session; the credential must belong to the caller's account.",
              "requestBody": "Reauthentication",
              "responses": [
                "Proof", "Malformed", "Unauthorized", "NotAllowed", "NotFound", "TooLarge", "UnsupportedMediaType",
                "Throttled", "Unavailable"
              ]
            }
          },
          "/password": {
            "post": {
              "tags": ["Account"],
              "operationId": "changePassword",
              "summary": "Change the password of the caller's account",
              "security": [{"session": []}, {"cookie": []}],
              "description": "Ends the subject's other sessions.",
              "requestBody": "PasswordChange",
              "responses": [
                "Done", "Malformed", "Unauthorized", "NotAllowed", "NotFound", "TooLarge", "UnsupportedMediaType",
                "Throttled", "Unavailable"
              ]
            }
          },
          "/{provider}/notifications": {
            "parameters": [{"$ref": "#/components/parameters/Provider"}],
            "post": {
              "tags": ["Account"],
              "operationId": "notify",
              "summary": "Receive a notification of a provider's issuer",
              "security": [],
              "description": "For issuers. Only where the provider's configuration turns it on.",
              "requestBody": "Notification",
              "responses": [
                "NotificationOutcome", "Malformed", "NotFound", "TooLarge", "UnsupportedMediaType", "Throttled",
                "Unavailable"
              ]
            }
          }
        }
        """#
}
