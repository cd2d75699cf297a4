/// The responses of the endpoints, with an example of each.
extension OpenAPI {
    /// All responses; those that are errors have one body, whose `code` tells them apart.
    static let responses = #"""
        {
          "schemas": {
            "Problem": {
              "description": "RFC 9457. The code is for programs; the cause is in the log, under the request's id.",
              "type": "object",
              "required": ["type", "title", "status", "code", "request_id"],
              "properties": {
                "type": {"type": "string"},
                "title": {"type": "string"},
                "status": {"type": "integer"},
                "code": {
                  "type": "string",
                  "description": "One of `request_invalid`, `credential_missing`, `credential_invalid`, `reauthentication_required`, `second_factor_required`, `dpop_proof_invalid`, `not_allowed`, `no_route`, `not_found`, `method_not_allowed`, `identity_taken`, `provider_already_linked`, `last_identity`, `username_taken`, `request_too_large`, `throttled`, `auth_unavailable`, `overloaded`, `cross_site`; later versions may have others."
                },
                "detail": {"type": "string", "description": "One sentence about the body, for the app's developer."},
                "errors": {
                  "type": "array",
                  "description": "The invalid members of the body.",
                  "items": {"$ref": "#/components/schemas/BodyError"}
                },
                "max_age": {
                  "type": "integer",
                  "description": "The maximum time since the user authenticated, in seconds (RFC 9470)."
                },
                "acr_values": {"type": "string", "description": "The level of authentication that is needed (RFC 9470)."},
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
                  "type": "string",
                  "description": "One of `missing`, `unknown_type`, `repeated`, `too_short`, `too_long`, `invalid`, `breached`, `malformed`; later versions may have others."
                }
              },
              "additionalProperties": false
            }
          },
          "responses": {
            "Tokens": {
              "description": "A pair of tokens.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {
                "application/json": {
                  "schema": {"$ref": "#/components/schemas/Tokens"},
                  "example": {
                    "access_token": "mat_EXAMPLE",
                    "token_type": "Bearer",
                    "expires_in": 900,
                    "refresh_token": "mrt_EXAMPLE",
                    "refresh_expires_in": 5184000,
                    "session_id": "ses_EXAMPLE",
                    "subject": "usr_pc4i7wq2",
                    "provider": "apple",
                    "new_account": true
                  }
                }
              }
            },
            "Nonce": {
              "description": "A single-use nonce.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {
                "application/json": {
                  "schema": {"$ref": "#/components/schemas/Nonce"},
                  "example": {"nonce": "mno_EXAMPLE-0123456789", "expires_in": 300}
                }
              }
            },
            "Session": {
              "description": "The caller's session.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {
                "application/json": {
                  "schema": {"$ref": "#/components/schemas/Session"},
                  "example": {
                    "subject": "usr_pc4i7wq2",
                    "provider": "apple",
                    "claims": {"email": "anna@example.com", "email_verified": true},
                    "session_id": "ses_EXAMPLE",
                    "auth_time": 1795350000,
                    "expires_at": 1795354500,
                    "identities": [{"provider": "apple", "state": "authorized", "checked_at": 1795353600}]
                  }
                }
              }
            },
            "Proof": {
              "description": "The session's proof.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {
                "application/json": {
                  "schema": {"$ref": "#/components/schemas/Proof"},
                  "example": {"session_id": "ses_EXAMPLE", "auth_time": 1795354200}
                }
              }
            },
            "Sessions": {
              "description": "The caller's sessions.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {
                "application/json": {
                  "schema": {"$ref": "#/components/schemas/Sessions"},
                  "example": {
                    "sessions": [
                      {
                        "session_id": "ses_EXAMPLE",
                        "provider": "apple",
                        "created_at": 1795350000,
                        "last_seen_at": 1795353600,
                        "expires_at": 1800534000,
                        "current": true,
                        "device_name": "Anna's iPhone"
                      }
                    ]
                  }
                }
              }
            },
            "Identities": {
              "description": "The identities of the caller's account.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {
                "application/json": {
                  "schema": {"$ref": "#/components/schemas/Identities"},
                  "example": {
                    "identities": [
                      {
                        "provider": "apple",
                        "linked_at": 1795350000,
                        "last_login_at": 1795353600,
                        "state": "authorized",
                        "can_unlink": false,
                        "email": "anna@example.com"
                      }
                    ]
                  }
                }
              }
            },
            "Account": {
              "description": "The caller's account.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {
                "application/json": {
                  "schema": {"$ref": "#/components/schemas/Account"},
                  "example": {
                    "subject": "usr_pc4i7wq2",
                    "profile": {"name": "Anna Bauer"},
                    "identities": [
                      {"provider": "apple", "state": "authorized", "checked_at": 1795353600},
                      {"provider": "password", "state": "unknown", "checked_at": null}
                    ]
                  }
                }
              }
            },
            "Profile": {
              "description": "What the caller says of themselves.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {
                "application/json": {
                  "schema": {"$ref": "#/components/schemas/Profile"},
                  "example": {"name": "Anna Bauer", "locale": "de-AT"}
                }
              }
            },
            "NotificationOutcome": {
              "description": "The notification is stored; what became of it.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {
                "application/json": {
                  "schema": {"$ref": "#/components/schemas/NotificationOutcome"},
                  "example": {"outcome": "applied"}
                }
              }
            },
            "Revoked": {
              "description": "The token is not valid any more.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}}
            },
            "Done": {
              "description": "Done.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}}
            },
            "Accepted": {
              "description": "Recorded; what is left to do is done later.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}}
            },
            "Malformed": {
              "description": "The path, the query or the body is invalid: `request_invalid`.",
              "content": {
                "application/problem+json": {
                  "schema": {"$ref": "#/components/schemas/Problem"},
                  "example": {
                    "type": "urn:martlet:problem:request_invalid",
                    "title": "Bad Request",
                    "status": 400,
                    "code": "request_invalid",
                    "detail": "The member `identity_token` is missing.",
                    "errors": [{"pointer": "/identity_token", "code": "missing"}],
                    "request_id": "7f1c09ad52be6e30000000000000002a"
                  }
                }
              }
            },
            "Unauthorized": {
              "description": "`credential_missing`; `credential_invalid`; `reauthentication_required` where the user has to authenticate again (RFC 9470), `dpop_proof_invalid` where a proof of the client's key is needed (RFC 9449).",
              "headers": {"WWW-Authenticate": {"required": true, "schema": {"type": "string"}}},
              "content": {
                "application/problem+json": {
                  "schema": {"$ref": "#/components/schemas/Problem"},
                  "example": {
                    "type": "urn:martlet:problem:credential_invalid",
                    "title": "Unauthorized",
                    "status": 401,
                    "code": "credential_invalid",
                    "request_id": "7f1c09ad52be6e30000000000000002a"
                  }
                }
              }
            },
            "NotAllowed": {
              "description": "The caller is known but not allowed: `not_allowed`; or another site may have sent the request along with a cookie: `cross_site`.",
              "headers": {"WWW-Authenticate": { "schema": {"type": "string"}}},
              "content": {
                "application/problem+json": {
                  "schema": {"$ref": "#/components/schemas/Problem"},
                  "example": {
                    "type": "urn:martlet:problem:not_allowed",
                    "title": "Forbidden",
                    "status": 403,
                    "code": "not_allowed",
                    "request_id": "7f1c09ad52be6e30000000000000002a"
                  }
                }
              }
            },
            "NotFound": {
              "description": "`no_route`: no such endpoint or provider; `not_found`: no such session or identity.",
              "content": {
                "application/problem+json": {
                  "schema": {"$ref": "#/components/schemas/Problem"},
                  "example": {
                    "type": "urn:martlet:problem:not_found",
                    "title": "Not Found",
                    "status": 404,
                    "code": "not_found",
                    "request_id": "7f1c09ad52be6e30000000000000002a"
                  }
                }
              }
            },
            "Conflict": {
              "description": "`identity_taken`: by another account. `provider_already_linked`. `last_identity`.",
              "content": {
                "application/problem+json": {
                  "schema": {"$ref": "#/components/schemas/Problem"},
                  "example": {
                    "type": "urn:martlet:problem:identity_taken",
                    "title": "Conflict",
                    "status": 409,
                    "code": "identity_taken",
                    "request_id": "7f1c09ad52be6e30000000000000002a"
                  }
                }
              }
            },
            "TooLarge": {
              "description": "The body is longer than 64 KiB: `request_too_large`.",
              "content": {
                "application/problem+json": {
                  "schema": {"$ref": "#/components/schemas/Problem"},
                  "example": {
                    "type": "urn:martlet:problem:request_too_large",
                    "title": "Content Too Large",
                    "status": 413,
                    "code": "request_too_large",
                    "request_id": "7f1c09ad52be6e30000000000000002a"
                  }
                }
              }
            },
            "UnsupportedMediaType": {
              "description": "Neither JSON nor a form: `request_invalid`.",
              "content": {
                "application/problem+json": {
                  "schema": {"$ref": "#/components/schemas/Problem"},
                  "example": {
                    "type": "urn:martlet:problem:request_invalid",
                    "title": "Unsupported Media Type",
                    "status": 415,
                    "code": "request_invalid",
                    "request_id": "7f1c09ad52be6e30000000000000002a"
                  }
                }
              }
            },
            "Throttled": {
              "description": "Too many attempts: `throttled`.",
              "headers": {"Retry-After": {"required": true, "schema": {"type": "integer", "minimum": 1}}},
              "content": {
                "application/problem+json": {
                  "schema": {"$ref": "#/components/schemas/Problem"},
                  "example": {
                    "type": "urn:martlet:problem:throttled",
                    "title": "Too Many Requests",
                    "status": 429,
                    "code": "throttled",
                    "request_id": "7f1c09ad52be6e30000000000000002a"
                  }
                }
              }
            },
            "Unavailable": {
              "description": "A required service is unavailable: `auth_unavailable`.",
              "headers": {"Retry-After": {"required": true, "schema": {"type": "integer", "minimum": 1}}},
              "content": {
                "application/problem+json": {
                  "schema": {"$ref": "#/components/schemas/Problem"},
                  "example": {
                    "type": "urn:martlet:problem:auth_unavailable",
                    "title": "Service Unavailable",
                    "status": 503,
                    "code": "auth_unavailable",
                    "request_id": "7f1c09ad52be6e30000000000000002a"
                  }
                }
              }
            }
          }
        }
        """#
}
