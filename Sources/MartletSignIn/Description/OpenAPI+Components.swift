/// The bodies of the endpoints' requests and responses.
extension OpenAPI {
    /// Bodies of requests, and their credential.
    static let requests = #"""
        {
          "securitySchemes": {
            "session": {
              "type": "http",
              "scheme": "bearer",
              "description": "The access token of a session; with the scheme `DPoP`, and a proof in the field `DPoP`, if it is bound to a key (RFC 9449)."
            },
            "cookie": {
              "type": "apiKey",
              "in": "cookie",
              "name": "__Host-martlet",
              "description": "The session of a browser, where the gateway has sign-in pages. Requests that change something must be of the same site."
            }
          },
          "parameters": {
            "Provider": {
              "name": "provider",
              "in": "path",
              "required": true,
              "schema": {"type": "string", "pattern": "^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}$"},
              "description": "A provider's name in the configuration.",
              "example": "apple"
            },
            "KeyProof": {
              "name": "DPoP",
              "in": "header",
              "schema": {"type": "string"},
              "description": "A proof of a key of the client, to which the session is bound then, or is already (RFC 9449). `sessions.dpop` says whether it is ignored, optional or required."
            }
          },
          "schemas": {
            "OtherLogin": {
              "description": "What a provider of another kind requires.",
              "type": "object",
              "additionalProperties": true
            },
            "OpenIDLogin": {
              "type": "object",
              "required": ["identity_token"],
              "properties": {
                "identity_token": {"type": "string", "minLength": 1, "description": "The issuer's ID token."},
                "nonce": {"type": ["string", "null"], "description": "Not hashed."},
                "device_name": {"type": ["string", "null"], "maxLength": 64}
              }
            },
            "AppleLogin": {
              "type": "object",
              "required": ["identity_token"],
              "properties": {
                "identity_token": {"type": "string", "minLength": 1},
                "device_name": {"type": ["string", "null"], "maxLength": 64},
                "replaces": {
                  "type": ["string", "null"],
                  "description": "The refresh token of the session that this login replaces, which ends."
                },
                "authorization_code": {
                  "type": ["string", "null"],
                  "description": "Exchanged for a refresh token, once, where the provider has a key."
                },
                "user": {
                  "type": ["string", "null"],
                  "description": "Apple's user id or, in a form, Apple's JSON."
                },
                "nonce": {"type": ["string", "null"], "description": "Not hashed."},
                "full_name": {
                  "type": ["object", "null"],
                  "properties": {
                    "given_name": {"type": ["string", "null"]},
                    "family_name": {"type": ["string", "null"]}
                  }
                }
              }
            },
            "WeChatLogin": {
              "type": "object",
              "required": ["code"],
              "properties": {
                "app": {"type": ["string", "null"], "description": "May be omitted if there is only one."},
                "code": {"type": "string", "minLength": 1, "maxLength": 128},
                "device_name": {"type": ["string", "null"], "maxLength": 64},
                "replaces": {
                  "type": ["string", "null"],
                  "description": "The refresh token of the session that this login replaces, which ends."
                },
                "phone_code": {
                  "type": ["string", "null"],
                  "description": "The code of a mini-program's phone number, where the app has `phone: true`."
                },
                "raw_data": {"type": ["string", "null"]},
                "signature": {"type": ["string", "null"]},
                "encrypted_data": {"type": ["string", "null"]},
                "iv": {"type": ["string", "null"]}
              }
            },
            "PasswordLogin": {
              "type": "object",
              "required": ["username", "password"],
              "properties": {
                "username": {"type": "string", "minLength": 1},
                "password": {"type": "string", "minLength": 1},
                "device_name": {"type": ["string", "null"], "maxLength": 64},
                "replaces": {
                  "type": ["string", "null"],
                  "description": "The refresh token of the session that this login replaces, which ends."
                }
              }
            },
            "Reauthentication": {
              "description": "The members of a login at the provider, and the provider's name.",
              "type": "object",
              "required": ["provider"],
              "properties": {
                "provider": {"type": "string", "description": "A provider's name in the configuration."},
                "identity_token": {"type": "string", "minLength": 1},
                "nonce": {"type": ["string", "null"], "description": "Not hashed; beside `identity_token`."},
                "code": {"type": "string", "minLength": 1, "maxLength": 128},
                "app": {"type": ["string", "null"], "description": "Beside `code`; may be omitted if there is only one."},
                "username": {"type": "string", "minLength": 1},
                "password": {"type": "string", "minLength": 1}
              }
            },
            "Refresh": {
              "type": "object",
              "required": ["refresh_token"],
              "properties": {"refresh_token": {"type": "string", "minLength": 1}}
            },
            "PasswordChange": {
              "type": "object",
              "required": ["current_password", "new_password"],
              "properties": {
                "current_password": {"type": "string", "minLength": 1},
                "new_password": {"type": "string", "minLength": 1}
              }
            },
            "Notification": {
              "description": "What the issuer has signed.",
              "type": "object",
              "required": ["payload"],
              "properties": {"payload": {"type": "string", "description": "A JWT."}}
            }
          }
        }
        """#

    /// Bodies of responses.
    static let bodies = #"""
        {
          "schemas": {
            "Tokens": {
              "type": "object",
              "required": [
                "access_token", "token_type", "expires_in", "refresh_token", "refresh_expires_in", "session_id",
                "subject", "provider"
              ],
              "properties": {
                "access_token": {"type": "string", "maxLength": 128, "pattern": "^mat_"},
                "token_type": {
                  "type": "string",
                  "description": "`Bearer`, or `DPoP` if the session is bound to a key of the client (RFC 9449)."
                },
                "expires_in": {"type": "integer", "minimum": 0},
                "refresh_token": {"type": "string", "maxLength": 128, "pattern": "^mrt_"},
                "refresh_expires_in": {"type": "integer", "minimum": 0},
                "session_id": {"type": "string"},
                "subject": {"type": "string"},
                "provider": {"type": "string"},
                "new_account": {
                  "type": "boolean",
                  "description": "Whether this login created the account; absent without an account store."
                }
              },
              "additionalProperties": false
            },
            "Nonce": {
              "type": "object",
              "required": ["nonce", "expires_in"],
              "properties": {"nonce": {"type": "string", "minLength": 22}, "expires_in": {"type": "integer", "minimum": 0}},
              "additionalProperties": false
            },
            "Session": {
              "type": "object",
              "required": ["subject", "provider", "claims", "session_id", "auth_time", "expires_at"],
              "properties": {
                "subject": {"type": "string"},
                "provider": {"type": "string"},
                "claims": {"description": "An object: the claims of the identity and of its account."},
                "session_id": {"type": "string"},
                "auth_time": {"type": "integer", "description": "When the user last authenticated."},
                "expires_at": {"type": "integer", "description": "When the access token expires."},
                "identities": {
                  "type": "array",
                  "description": "As in `Account`; absent without an account store, and while it is unavailable.",
                  "items": {"$ref": "#/components/schemas/IdentityState"}
                }
              },
              "additionalProperties": false
            },
            "Proof": {
              "type": "object",
              "required": ["session_id", "auth_time"],
              "properties": {
                "session_id": {"type": "string"},
                "auth_time": {"type": "integer", "description": "When the user last authenticated."},
                "acr": {"type": "string", "description": "The level of that authentication, if the provider states one."}
              },
              "additionalProperties": false
            },
            "Sessions": {
              "type": "object",
              "required": ["sessions"],
              "properties": {"sessions": {"type": "array", "items": {"$ref": "#/components/schemas/SessionEntry"}}},
              "additionalProperties": false
            },
            "SessionEntry": {
              "type": "object",
              "required": ["session_id", "provider", "created_at", "last_seen_at", "expires_at", "current"],
              "properties": {
                "session_id": {"type": "string"},
                "provider": {"type": "string"},
                "created_at": {"type": "integer"},
                "last_seen_at": {"type": "integer"},
                "expires_at": {"type": "integer", "description": "When the session expires."},
                "current": {"type": "boolean"},
                "device_name": {"type": "string", "description": "As sent with the login."},
                "user_agent": {"type": "string", "description": "As sent with the login."},
                "address": {"type": "string", "description": "The client address of the login."},
                "last_address": {"type": "string", "description": "The client address of the last use."},
                "bound": {
                  "type": "boolean",
                  "description": "Whether the session is bound to a key of the client (RFC 9449); absent if not."
                }
              },
              "additionalProperties": false
            },
            "Identities": {
              "type": "object",
              "required": ["identities"],
              "properties": {
                "identities": {"type": "array", "items": {"$ref": "#/components/schemas/IdentityEntry"}}
              },
              "additionalProperties": false
            },
            "IdentityEntry": {
              "type": "object",
              "required": ["provider", "linked_at", "last_login_at", "state", "can_unlink"],
              "properties": {
                "provider": {"type": "string"},
                "linked_at": {"type": "integer"},
                "last_login_at": {"type": "integer", "description": "`linked_at` if there was no login since."},
                "state": {"$ref": "#/components/schemas/ConsentState"},
                "name": {"type": "string", "description": "Of the identity that created the session."},
                "email": {"type": "string", "description": "Of the identity that created the session."},
                "can_unlink": {"type": "boolean", "description": "Whether it is not the only one."}
              },
              "additionalProperties": false
            },
            "Account": {
              "type": "object",
              "required": ["subject", "profile", "identities"],
              "properties": {
                "subject": {"type": "string"},
                "profile": {"$ref": "#/components/schemas/Profile"},
                "identities": {
                  "type": "array",
                  "description": "The oldest first.",
                  "items": {"$ref": "#/components/schemas/IdentityState"}
                }
              },
              "additionalProperties": false
            },
            "Profile": {
              "type": "object",
              "description": "What the user says of themselves; responses have the members that are set.",
              "properties": {
                "name": {"type": ["string", "null"], "maxLength": 256},
                "locale": {"type": ["string", "null"], "maxLength": 35, "description": "A language tag (BCP 47)."}
              },
              "additionalProperties": false
            },
            "IdentityState": {
              "type": "object",
              "required": ["provider", "state", "checked_at"],
              "properties": {
                "provider": {"type": "string"},
                "state": {"$ref": "#/components/schemas/ConsentState"},
                "checked_at": {
                  "type": ["integer", "null"],
                  "description": "When the state became known: by a login, a check or a notification."
                }
              },
              "additionalProperties": false
            },
            "ConsentState": {
              "description": "What is known of the identity at its issuer; `unknown` for kinds that say nothing.",
              "enum": ["authorized", "revoked", "deleted", "transferred", "unknown"]
            },
            "NotificationOutcome": {
              "description": "`outcome`: `applied`, `repeated`, `outdated`, `unknown_identity` or `ignored`.",
              "required": ["outcome"]
            }
          }
        }
        """#
}
