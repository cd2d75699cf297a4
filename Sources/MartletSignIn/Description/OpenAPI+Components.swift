/// The requests and responses of the endpoints.
extension OpenAPI {
    /// Requests.
    static let requests = #"""
        {
          "securitySchemes": {
            "session": {"type": "http", "scheme": "bearer", "description": "The access token of a session."}
          },
          "parameters": {
            "Provider": {
              "name": "provider",
              "in": "path",
              "required": true,
              "schema": {"type": "string"},
              "description": "A provider's name in the configuration."
            }
          },
          "schemas": {
            "Login": {
              "description": "The members that the provider requires; those of other kinds are in their guides.",
              "anyOf": [
                {"$ref": "#/components/schemas/AppleLogin"},
                {"$ref": "#/components/schemas/WeChatLogin"},
                {"$ref": "#/components/schemas/PasswordLogin"},
                {"type": "object"}
              ]
            },
            "AppleLogin": {
              "type": "object",
              "required": ["identity_token"],
              "properties": {
                "identity_token": {"type": "string"},
                "device_name": {"type": ["string", "null"], "maxLength": 64},
                "authorization_code": {"type": ["string", "null"]},
                "user": {
                  "type": ["string", "null"],
                  "description": "Apple's user id or, in a form, Apple's JSON."
                },
                "nonce": {"type": ["string", "null"]},
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
                "code": {"type": "string"},
                "device_name": {"type": ["string", "null"], "maxLength": 64},
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
                "username": {"type": "string"},
                "password": {"type": "string"},
                "device_name": {"type": ["string", "null"], "maxLength": 64}
              }
            },
            "Refresh": {
              "type": "object",
              "required": ["refresh_token"],
              "properties": {"refresh_token": {"type": "string"}}
            },
            "PasswordChange": {
              "type": "object",
              "required": ["current_password", "new_password"],
              "properties": {"current_password": {"type": "string"}, "new_password": {"type": "string"}}
            }
          }
        }
        """#

    /// Responses.
    static let responses = #"""
        {
          "schemas": {
            "Tokens": {
              "type": "object",
              "required": [
                "access_token",
                "token_type",
                "expires_in",
                "refresh_token",
                "refresh_expires_in",
                "session_id",
                "subject",
                "provider"
              ],
              "properties": {
                "access_token": {"type": "string", "maxLength": 128, "pattern": "^mat_"},
                "token_type": {"const": "Bearer"},
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
              "properties": {"nonce": {"type": "string", "minLength": 22}, "expires_in": {"const": 300}},
              "additionalProperties": false
            },
            "Session": {
              "type": "object",
              "required": ["subject", "provider", "claims", "session_id", "expires_at"],
              "properties": {
                "subject": {"type": "string"},
                "provider": {"type": "string"},
                "claims": {"type": "object"},
                "session_id": {"type": "string"},
                "expires_at": {"type": "integer", "description": "When the access token expires."}
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
                "last_address": {"type": "string", "description": "The client address of the last use."}
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
                "state": {"type": "string", "description": "`active`; more states may be added."},
                "name": {"type": "string", "description": "Of the identity that created the session."},
                "email": {"type": "string", "description": "Of the identity that created the session."},
                "can_unlink": {"type": "boolean", "description": "Whether it is not the only one."}
              },
              "additionalProperties": false
            },
            "KeySet": {
              "type": "object",
              "required": ["keys"],
              "properties": {
                "keys": {
                  "type": "array",
                  "items": {
                    "type": "object",
                    "required": ["kty", "kid"],
                    "properties": {"kty": {"type": "string"}, "kid": {"type": "string"}}
                  }
                }
              }
            },
            "AppSiteAssociation": {
              "type": "object",
              "required": ["webcredentials"],
              "properties": {
                "webcredentials": {
                  "type": "object",
                  "required": ["apps"],
                  "properties": {"apps": {"type": "array", "items": {"type": "string"}}}
                }
              }
            },
            "Problem": {
              "description": "RFC 9457. The code is for programs; the cause is in the log, under the request's id.",
              "type": "object",
              "required": ["type", "title", "status", "code", "request_id"],
              "properties": {
                "type": {"type": "string"},
                "title": {"type": "string"},
                "status": {"type": "integer"},
                "code": {"type": "string"},
                "detail": {"type": "string", "description": "One sentence about the body, for the app's developer."},
                "errors": {
                  "type": "array",
                  "description": "The invalid members of the body.",
                  "items": {"$ref": "#/components/schemas/BodyError"}
                },
                "request_id": {"type": "string"}
              },
              "additionalProperties": false
            },
            "BodyError": {
              "type": "object",
              "required": ["pointer", "code"],
              "properties": {
                "pointer": {
                  "type": "string",
                  "description": "A JSON Pointer (RFC 6901), for forms too; empty for the whole body."
                },
                "code": {
                  "enum": ["missing", "unknown_type", "repeated", "too_short", "too_long", "invalid", "malformed"]
                }
              },
              "additionalProperties": false
            }
          },
          "responses": {
            "Tokens": {
              "description": "A pair of tokens.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Tokens"}}}
            },
            "Nonce": {
              "description": "A single-use nonce.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Nonce"}}}
            },
            "Session": {
              "description": "The caller's session.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Session"}}}
            },
            "Sessions": {
              "description": "The caller's sessions.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Sessions"}}}
            },
            "Identities": {
              "description": "The identities of the caller's account.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Identities"}}}
            },
            "Done": {
              "description": "Done.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}}
            },
            "Malformed": {
              "description": "The body or the query is invalid.",
              "content": {
                "application/problem+json": {
                  "schema": {
                    "allOf": [
                      {"$ref": "#/components/schemas/Problem"},
                      {"properties": {"code": {"enum": ["request_invalid"]}}}
                    ]
                  }
                }
              }
            },
            "Unauthorized": {
              "description": "No credential, or an invalid one.",
              "headers": {"WWW-Authenticate": {"required": true, "schema": {"type": "string"}}},
              "content": {
                "application/problem+json": {
                  "schema": {
                    "allOf": [
                      {"$ref": "#/components/schemas/Problem"},
                      {
                        "properties": {"code": {"enum": ["credential_missing", "credential_invalid"]}}
                      }
                    ]
                  }
                }
              }
            },
            "NotAllowed": {
              "description": "The caller is known but not allowed.",
              "headers": {"WWW-Authenticate": {"required": true, "schema": {"type": "string"}}},
              "content": {
                "application/problem+json": {
                  "schema": {
                    "allOf": [
                      {"$ref": "#/components/schemas/Problem"},
                      {"properties": {"code": {"enum": ["not_allowed"]}}}
                    ]
                  }
                }
              }
            },
            "NotFound": {
              "description": "No such endpoint, provider, session, identity or password.",
              "content": {
                "application/problem+json": {
                  "schema": {
                    "allOf": [
                      {"$ref": "#/components/schemas/Problem"},
                      {"properties": {"code": {"enum": ["no_route", "not_found"]}}}
                    ]
                  }
                }
              }
            },
            "Conflict": {
              "description": "The identity is linked to another account, the provider is already linked, or it is the last identity.",
              "content": {
                "application/problem+json": {
                  "schema": {
                    "allOf": [
                      {"$ref": "#/components/schemas/Problem"},
                      {"properties": {"code": {"enum": ["identity_taken", "provider_already_linked", "last_identity"]}}}
                    ]
                  }
                }
              }
            },
            "TooLarge": {
              "description": "The body is longer than 64 KiB.",
              "content": {
                "application/problem+json": {
                  "schema": {
                    "allOf": [
                      {"$ref": "#/components/schemas/Problem"},
                      {"properties": {"code": {"enum": ["request_too_large"]}}}
                    ]
                  }
                }
              }
            },
            "UnsupportedMediaType": {
              "description": "Neither JSON nor a form.",
              "content": {
                "application/problem+json": {
                  "schema": {
                    "allOf": [
                      {"$ref": "#/components/schemas/Problem"},
                      {"properties": {"code": {"enum": ["request_invalid"]}}}
                    ]
                  }
                }
              }
            },
            "Throttled": {
              "description": "Too many attempts.",
              "headers": {"Retry-After": {"required": true, "schema": {"type": "integer", "minimum": 1}}},
              "content": {
                "application/problem+json": {
                  "schema": {
                    "allOf": [
                      {"$ref": "#/components/schemas/Problem"},
                      {"properties": {"code": {"enum": ["throttled"]}}}
                    ]
                  }
                }
              }
            },
            "Unavailable": {
              "description": "A required service is unavailable.",
              "headers": {"Retry-After": {"required": true, "schema": {"type": "integer", "minimum": 1}}},
              "content": {
                "application/problem+json": {
                  "schema": {
                    "allOf": [
                      {"$ref": "#/components/schemas/Problem"},
                      {"properties": {"code": {"enum": ["auth_unavailable"]}}}
                    ]
                  }
                }
              }
            }
          }
        }
        """#
}
