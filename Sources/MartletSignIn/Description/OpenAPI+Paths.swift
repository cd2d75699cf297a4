/// The endpoints.
extension OpenAPI {
    /// Logins.
    static let loginPaths = #"""
        {
          "/login/{provider}": {
            "post": {
              "tags": ["Login"],
              "summary": "Log in",
              "security": [],
              "parameters": [{"$ref": "#/components/parameters/KeyProof"}],
              "responses": [
                "Tokens", "Malformed", "Unauthorized", "NotAllowed", "NotFound", "TooLarge", "UnsupportedMediaType",
                "Throttled", "Unavailable"
              ]
            }
          },
          "/nonce": {
            "post": {
              "tags": ["Login"],
              "operationId": "nonce",
              "summary": "Get a nonce for a login",
              "security": [],
              "responses": ["Nonce", "TooLarge", "Throttled", "Unavailable"]
            }
          },
          "/refresh": {
            "post": {
              "tags": ["Login"],
              "operationId": "refresh",
              "summary": "Exchange a refresh token for a new pair of tokens",
              "security": [],
              "parameters": [{"$ref": "#/components/parameters/KeyProof"}],
              "description": "The old token returns the same new pair for a short time; later use ends the session.",
              "requestBody": "Refresh",
              "responses": [
                "Tokens", "Malformed", "Unauthorized", "NotAllowed", "TooLarge", "UnsupportedMediaType", "Throttled",
                "Unavailable"
              ]
            }
          },
          "/token": {
            "post": {
              "tags": ["Login"],
              "operationId": "exchange",
              "summary": "Exchange a code, or a refresh token, for tokens (RFC 6749)",
              "security": [],
              "parameters": [{"$ref": "#/components/parameters/KeyProof"}],
              "description": "For apps that signed in by `GET /start/{provider}?client=native`. A code is used up by its first exchange, whatever the outcome. With `grant_type=refresh_token` the same as `/refresh`. Offered with `browser`.",
              "requestBody": "Code",
              "responses": [
                "Tokens", "Malformed", "Unauthorized", "NotAllowed", "TooLarge", "UnsupportedMediaType", "Throttled",
                "Unavailable"
              ]
            }
          },
          "/revoke": {
            "post": {
              "tags": ["Login"],
              "operationId": "revoke",
              "summary": "End the session of a token (RFC 7009)",
              "security": [],
              "description": "Takes an access token or a refresh token. An unknown token gets the same response.",
              "requestBody": "Token",
              "responses": ["Revoked", "Malformed", "TooLarge", "UnsupportedMediaType", "Throttled", "Unavailable"]
            }
          }
        }
        """#

    /// The caller's sessions.
    static let sessionPaths = #"""
        {
          "/logout": {
            "post": {
              "tags": ["Sessions"],
              "operationId": "logout",
              "summary": "End the session, or all sessions of the subject",
              "security": [{"session": []}, {"cookie": []}],
              "parameters": [
                {
                  "name": "all",
                  "in": "query",
                  "schema": {"type": "string", "enum": ["true", "false"]},
                  "description": "`true` ends all sessions of the subject."
                }
              ],
              "responses": ["Done", "Malformed", "Unauthorized", "TooLarge", "Unavailable"]
            }
          },
          "/session": {
            "get": {
              "tags": ["Sessions"],
              "operationId": "session",
              "summary": "Get the caller's session",
              "security": [{"session": []}, {"cookie": []}],
              "responses": ["Session", "Unauthorized", "TooLarge", "Unavailable"]
            }
          },
          "/sessions": {
            "get": {
              "tags": ["Sessions"],
              "operationId": "sessions",
              "summary": "List the caller's sessions, the newest first",
              "security": [{"session": []}, {"cookie": []}],
              "responses": ["Sessions", "Unauthorized", "TooLarge", "Unavailable"]
            }
          },
          "/sessions/{id}": {
            "parameters": [
              {
                "name": "id", "in": "path", "required": true, "schema": {"type": "string", "minLength": 1},
                "example": "ses_EXAMPLE"
              }
            ],
            "delete": {
              "tags": ["Sessions"],
              "operationId": "endSession",
              "summary": "End one of the caller's sessions",
              "security": [{"session": []}, {"cookie": []}],
              "responses": ["Done", "Malformed", "Unauthorized", "NotFound", "TooLarge", "Unavailable"]
            }
          },
          "/openapi.json": {
            "get": {
              "tags": ["Documents"],
              "operationId": "description",
              "summary": "This description",
              "security": [],
              "parameters": [
                {
                  "name": "forms", "in": "query", "schema": {"type": "boolean"},
                  "description": "Whether bodies are described as forms, too."
                }
              ],
              "responses": {
                "200": {
                  "description": "An OpenAPI document.",
                  "content": {"application/json": {"schema": {"type": "object", "required": ["openapi", "paths"]}}}
                },
                "413": {"$ref": "#/components/responses/TooLarge"}
              }
            }
          }
        }
        """#

    /// The paths outside `sessions.path`.
    static let wellKnownPaths = #"""
        {
          "/.well-known/oauth-authorization-server": {
            "servers": [{"url": "/"}],
            "get": {
              "tags": ["Documents"],
              "operationId": "metadata",
              "summary": "The token and revocation endpoints, for OAuth clients (RFC 8414)",
              "security": [],
              "responses": {
                "200": {
                  "description": "Metadata, where `browser` is configured.",
                  "content": {"application/json": {"schema": {"required": ["issuer", "token_endpoint"]}}}
                },
                "404": {"$ref": "#/components/responses/NotFound"},
                "413": {"$ref": "#/components/responses/TooLarge"}
              }
            }
          },
          "/.well-known/jwks.json": {
            "servers": [{"url": "/"}],
            "get": {
              "tags": ["Documents"],
              "operationId": "keySet",
              "summary": "The public keys of the assertion (RFC 7517)",
              "security": [],
              "responses": {
                "200": {
                  "description": "A key set.",
                  "content": {
                    "application/json": {"schema": {"description": "A JWK Set (RFC 7517 §5).", "required": ["keys"]}}
                  }
                },
                "404": {"$ref": "#/components/responses/NotFound"},
                "413": {"$ref": "#/components/responses/TooLarge"}
              }
            }
          },
          "/.well-known/apple-app-site-association": {
            "servers": [{"url": "/"}],
            "get": {
              "tags": ["Documents"],
              "operationId": "appSiteAssociation",
              "summary": "The apps that may use this host's passwords",
              "security": [],
              "responses": {
                "200": {
                  "description": "Apple's document.",
                  "content": {"application/json": {"schema": {"required": ["webcredentials"]}}}
                },
                "404": {"$ref": "#/components/responses/NotFound"},
                "413": {"$ref": "#/components/responses/TooLarge"}
              }
            }
          },
          "/.well-known/change-password": {
            "servers": [{"url": "/"}],
            "get": {
              "tags": ["Documents"],
              "operationId": "changePasswordPage",
              "summary": "Redirect to the page that changes passwords",
              "security": [],
              "responses": {
                "303": {
                  "description": "The page.",
                  "headers": {"Location": {"required": true, "schema": {"type": "string"}}}
                },
                "404": {"$ref": "#/components/responses/NotFound"},
                "413": {"$ref": "#/components/responses/TooLarge"}
              }
            }
          }
        }
        """#
}
