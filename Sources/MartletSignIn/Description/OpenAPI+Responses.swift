internal import MartletHTTP
internal import MartletJSON

/// The responses of the endpoints, with an example of each.
extension OpenAPI {
    /// All responses; those that are errors have one body, whose `code` tells them apart.
    ///
    /// ``writtenOut(responses:)`` adds to an `example` its schema, and to a `problem` what all of them have.
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
            },
            "Nonce": {
              "description": "A single-use nonce.",
              "example": {"nonce": "mno_EXAMPLE-0123456789", "expires_in": 300}
            },
            "Session": {
              "description": "The caller's session.",
              "example": {
                "subject": "usr_pc4i7wq2",
                "provider": "apple",
                "claims": {"email": "anna@example.com", "email_verified": true},
                "session_id": "ses_EXAMPLE",
                "auth_time": 1795350000,
                "expires_at": 1795354500,
                "identities": [{"provider": "apple", "state": "authorized", "checked_at": 1795353600}]
              }
            },
            "Proof": {
              "description": "The session's proof.",
              "example": {"session_id": "ses_EXAMPLE", "auth_time": 1795354200}
            },
            "Sessions": {
              "description": "The caller's sessions.",
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
            },
            "Identities": {
              "description": "The identities of the caller's account.",
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
            },
            "Account": {
              "description": "The caller's account.",
              "example": {
                "subject": "usr_pc4i7wq2",
                "profile": {"name": "Anna Bauer"},
                "identities": [
                  {"provider": "apple", "state": "authorized", "checked_at": 1795353600},
                  {"provider": "password", "state": "unknown", "checked_at": null}
                ]
              }
            },
            "Profile": {
              "description": "What the caller says of themselves.",
              "example": {"name": "Anna Bauer", "locale": "de-AT"}
            },
            "NotificationOutcome": {
              "description": "The notification is stored; what became of it.",
              "example": {"outcome": "applied"}
            },
            "Revoked": {"description": "The token is not valid any more."},
            "Done": {"description": "Done."},
            "Accepted": {"description": "Recorded; what is left to do is done later."},
            "Malformed": {
              "description": "The path, the query or the body is invalid: `request_invalid`.",
              "problem": {
                "code": "request_invalid",
                "detail": "The member `identity_token` is missing.",
                "errors": [{"pointer": "/identity_token", "code": "missing"}]
              }
            },
            "Unauthorized": {
              "description": "`credential_missing`; `credential_invalid`; `reauthentication_required` where the user has to authenticate again (RFC 9470), `dpop_proof_invalid` where a proof of the client's key is needed (RFC 9449).",
              "headers": {"WWW-Authenticate": {"required": true, "schema": {"type": "string"}}},
              "problem": {"code": "credential_invalid"}
            },
            "NotAllowed": {
              "description": "The caller is known but not allowed: `not_allowed`; or another site may have sent the request along with a cookie: `cross_site`.",
              "headers": {"WWW-Authenticate": {"schema": {"type": "string"}}},
              "problem": {"code": "not_allowed"}
            },
            "NotFound": {
              "description": "`no_route`: no such endpoint or provider; `not_found`: no such session or identity.",
              "problem": {"code": "not_found"}
            },
            "Conflict": {
              "description": "`identity_taken`: by another account. `provider_already_linked`. `last_identity`.",
              "problem": {"code": "identity_taken"}
            },
            "TooLarge": {
              "description": "The body is longer than 64 KiB: `request_too_large`.",
              "problem": {"code": "request_too_large"}
            },
            "UnsupportedMediaType": {
              "description": "Neither JSON nor a form: `request_invalid`.",
              "problem": {"code": "request_invalid"}
            },
            "Throttled": {
              "description": "Too many attempts: `throttled`.",
              "headers": {"Retry-After": {"required": true, "schema": {"type": "integer", "minimum": 1}}},
              "problem": {"code": "throttled"}
            },
            "Unavailable": {
              "description": "A required service is unavailable: `auth_unavailable`.",
              "headers": {"Retry-After": {"required": true, "schema": {"type": "integer", "minimum": 1}}},
              "problem": {"code": "auth_unavailable"}
            }
          }
        }
        """#

    /// Writes out what responses abbreviate; none of those that are no errors may be cached.
    static func writtenOut(responses: JSONObject) -> JSONObject {
        var responses = responses
        for member in responses.members {
            guard var response = member.value.object else { continue }
            if let problem = response["problem"]?.object {
                response["problem"] = nil
                response["content"] = problemContent(problem, status: statuses[member.name] ?? "500")
            } else {
                response["headers"] = ["Cache-Control": ["required": true, "schema": ["const": "no-store"]]]
                if let example = response["example"] {
                    response["example"] = nil
                    let schema: JSONValue = ["$ref": .string("#/components/schemas/\(member.name)")]
                    response["content"] = ["application/json": ["schema": schema, "example": example]]
                }
            }
            responses[member.name] = .object(response)
        }
        return responses
    }

    private static func problemContent(_ problem: JSONObject, status: String) -> JSONValue {
        let (status, code) = (Int(status) ?? 500, problem["code"]?.string ?? "")
        var example: JSONObject = [
            "type": .string("urn:martlet:problem:\(code)"), "title": .string("\(HTTPStatus.reason(status))"),
            "status": .integer(Int64(status)),
        ]
        for member in problem.members { example[member.name] = member.value }
        example["request_id"] = "7f1c09ad52be6e30000000000000002a"
        let schema: JSONValue = ["$ref": "#/components/schemas/Problem"]
        return ["application/problem+json": ["schema": schema, "example": .object(example)]]
    }
}
