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
              "security": [{"session": []}],
              "responses": {
                "200": {"$ref": "#/components/responses/Account"},
                "401": {"$ref": "#/components/responses/Unauthorized"},
                "404": {"$ref": "#/components/responses/NotFound"},
                "413": {"$ref": "#/components/responses/TooLarge"},
                "503": {"$ref": "#/components/responses/Unavailable"}
              }
            },
            "delete": {
              "tags": ["Account"],
              "operationId": "deleteAccount",
              "summary": "Delete the caller's account",
              "security": [{"session": []}],
              "description": "Needs a proof of the last 10 minutes: the session's, or one in the body.",
              "requestBody": {
                "required": false,
                "content": {
                  "application/json": {"schema": {"$ref": "#/components/schemas/Reauthentication"}},
                  "application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/Reauthentication"}}
                }
              },
              "responses": {
                "202": {"$ref": "#/components/responses/Accepted"},
                "400": {"$ref": "#/components/responses/Malformed"},
                "401": {"$ref": "#/components/responses/Unauthorized"},
                "403": {"$ref": "#/components/responses/NotAllowed"},
                "404": {"$ref": "#/components/responses/NotFound"},
                "413": {"$ref": "#/components/responses/TooLarge"},
                "415": {"$ref": "#/components/responses/UnsupportedMediaType"},
                "429": {"$ref": "#/components/responses/Throttled"},
                "503": {"$ref": "#/components/responses/Unavailable"}
              }
            }
          },
          "/profile": {
            "patch": {
              "tags": ["Account"],
              "operationId": "changeProfile",
              "summary": "Change what the caller says of themselves",
              "security": [{"session": []}],
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
              "responses": {
                "200": {"$ref": "#/components/responses/Profile"},
                "400": {"$ref": "#/components/responses/Malformed"},
                "401": {"$ref": "#/components/responses/Unauthorized"},
                "404": {"$ref": "#/components/responses/NotFound"},
                "413": {"$ref": "#/components/responses/TooLarge"},
                "415": {"$ref": "#/components/responses/UnsupportedMediaType"},
                "429": {"$ref": "#/components/responses/Throttled"},
                "503": {"$ref": "#/components/responses/Unavailable"}
              }
            }
          },
          "/identities": {
            "get": {
              "tags": ["Account"],
              "operationId": "identities",
              "summary": "List the identities of the caller's account, the oldest first",
              "security": [{"session": []}],
              "responses": {
                "200": {"$ref": "#/components/responses/Identities"},
                "401": {"$ref": "#/components/responses/Unauthorized"},
                "413": {"$ref": "#/components/responses/TooLarge"},
                "503": {"$ref": "#/components/responses/Unavailable"}
              }
            }
          },
          "/link/{provider}": {
            "parameters": [{"$ref": "#/components/parameters/Provider"}],
            "post": {
              "tags": ["Account"],
              "operationId": "link",
              "summary": "Link an identity to the caller's account",
              "security": [{"session": []}],
              "description": "Requires an account store. Idempotent.",
              "requestBody": {
                "required": true,
                "content": {
                  "application/json": {"schema": {"$ref": "#/components/schemas/Login"}},
                  "application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/Login"}}
                }
              },
              "responses": {
                "204": {"$ref": "#/components/responses/Done"},
                "400": {"$ref": "#/components/responses/Malformed"},
                "401": {"$ref": "#/components/responses/Unauthorized"},
                "403": {"$ref": "#/components/responses/NotAllowed"},
                "404": {"$ref": "#/components/responses/NotFound"},
                "409": {"$ref": "#/components/responses/Conflict"},
                "413": {"$ref": "#/components/responses/TooLarge"},
                "415": {"$ref": "#/components/responses/UnsupportedMediaType"},
                "429": {"$ref": "#/components/responses/Throttled"},
                "503": {"$ref": "#/components/responses/Unavailable"}
              }
            },
            "delete": {
              "tags": ["Account"],
              "operationId": "unlink",
              "summary": "Unlink an identity from the caller's account",
              "security": [{"session": []}],
              "description": "Ends the sessions that the identity created. The last identity cannot be unlinked.",
              "responses": {
                "204": {"$ref": "#/components/responses/Done"},
                "400": {"$ref": "#/components/responses/Malformed"},
                "401": {"$ref": "#/components/responses/Unauthorized"},
                "404": {"$ref": "#/components/responses/NotFound"},
                "409": {"$ref": "#/components/responses/Conflict"},
                "413": {"$ref": "#/components/responses/TooLarge"},
                "503": {"$ref": "#/components/responses/Unavailable"}
              }
            }
          },
          "/reauthenticate": {
            "post": {
              "tags": ["Account"],
              "operationId": "reauthenticate",
              "summary": "Authenticate again, for routes that require a recent or a stronger authentication",
              "security": [{"session": []}],
              "description": "Renews the proof of the session; the credential must belong to the caller's account.",
              "requestBody": {
                "required": true,
                "content": {
                  "application/json": {"schema": {"$ref": "#/components/schemas/Reauthentication"}},
                  "application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/Reauthentication"}}
                }
              },
              "responses": {
                "200": {"$ref": "#/components/responses/Proof"},
                "400": {"$ref": "#/components/responses/Malformed"},
                "401": {"$ref": "#/components/responses/Unauthorized"},
                "403": {"$ref": "#/components/responses/NotAllowed"},
                "404": {"$ref": "#/components/responses/NotFound"},
                "413": {"$ref": "#/components/responses/TooLarge"},
                "415": {"$ref": "#/components/responses/UnsupportedMediaType"},
                "429": {"$ref": "#/components/responses/Throttled"},
                "503": {"$ref": "#/components/responses/Unavailable"}
              }
            }
          },
          "/password": {
            "post": {
              "tags": ["Account"],
              "operationId": "changePassword",
              "summary": "Change the password of the caller's account",
              "security": [{"session": []}],
              "description": "Ends the subject's other sessions.",
              "requestBody": {
                "required": true,
                "content": {
                  "application/json": {"schema": {"$ref": "#/components/schemas/PasswordChange"}},
                  "application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/PasswordChange"}}
                }
              },
              "responses": {
                "204": {"$ref": "#/components/responses/Done"},
                "400": {"$ref": "#/components/responses/Malformed"},
                "401": {"$ref": "#/components/responses/Unauthorized"},
                "403": {"$ref": "#/components/responses/NotAllowed"},
                "404": {"$ref": "#/components/responses/NotFound"},
                "413": {"$ref": "#/components/responses/TooLarge"},
                "415": {"$ref": "#/components/responses/UnsupportedMediaType"},
                "429": {"$ref": "#/components/responses/Throttled"},
                "503": {"$ref": "#/components/responses/Unavailable"}
              }
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
              "requestBody": {
                "required": true,
                "content": {
                  "application/json": {"schema": {"$ref": "#/components/schemas/Notification"}},
                  "application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/Notification"}}
                }
              },
              "responses": {
                "200": {"$ref": "#/components/responses/NotificationOutcome"},
                "400": {"$ref": "#/components/responses/Malformed"},
                "404": {"$ref": "#/components/responses/NotFound"},
                "413": {"$ref": "#/components/responses/TooLarge"},
                "415": {"$ref": "#/components/responses/UnsupportedMediaType"},
                "429": {"$ref": "#/components/responses/Throttled"},
                "503": {"$ref": "#/components/responses/Unavailable"}
              }
            }
          }
        }
        """#
}
