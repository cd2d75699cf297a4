/// The endpoints where users register and replace a forgotten password.
extension OpenAPI {
    /// The endpoints.
    static let selfServicePaths = #"""
        {
          "/register": {
            "post": {
              "operationId": "register",
              "summary": "Register with an email address",
              "security": [],
              "description": "Off by default (404). The response does not depend on whether the address is known. 202: a mail with a one-time token was requested, and the user exists once it is used at `/register/verify`, with the password of that request. 204: addresses are not verified; the user can log in with `password`, unless the address was known.",
              "requestBody": "Registration",
              "responses": [
                "MailRequested", "Done", "Malformed", "NotFound", "TooLarge", "UnsupportedMediaType", "Throttled",
                "Unavailable"
              ]
            }
          },
          "/register/verify": {
            "post": {
              "operationId": "verifyRegistration",
              "summary": "Create the user of a registration with the token of a mail, and set the password",
              "security": [],
              "description": "Off by default (404). A token works once, for 30 minutes; afterwards 401. A password that is rejected (400) does not use the token up. The user logs in next.",
              "requestBody": "Token",
              "responses": [
                "Done", "Malformed", "Unauthorized", "NotFound", "TooLarge", "UnsupportedMediaType", "Throttled",
                "Unavailable"
              ]
            }
          },
          "/password/forgot": {
            "post": {
              "operationId": "forgotPassword",
              "summary": "Request a mail with a token to choose a new password",
              "security": [],
              "description": "Off by default (404). The response does not depend on whether the address is known; only a user's address gets a mail.",
              "requestBody": "ForgottenPassword",
              "responses": [
                "MailRequested", "Malformed", "NotFound", "TooLarge", "UnsupportedMediaType", "Throttled",
                "Unavailable"
              ]
            }
          },
          "/password/reset": {
            "post": {
              "operationId": "resetPassword",
              "summary": "Choose a new password with the token of a mail",
              "security": [],
              "description": "Off by default (404). Ends all sessions of the user. The first proof of an address also removes every other identity, and every API key, that its account had before. A token works once, for 30 minutes; afterwards 401. A new password that is rejected (400) does not use the token up.",
              "requestBody": "PasswordReset",
              "responses": [
                "Done", "Malformed", "Unauthorized", "NotFound", "TooLarge", "UnsupportedMediaType", "Throttled",
                "Unavailable"
              ]
            }
          }
        }
        """#

    /// Their requests and responses.
    static let selfServiceComponents = #"""
        {
          "schemas": {
            "Registration": {
              "type": "object",
              "required": ["email"],
              "properties": {
                "email": {"type": "string", "maxLength": 254, "description": "Also the user's name at logins."},
                "password": {"type": ["string", "null"], "description": "Required, and used, only where addresses are not verified."},
                "name": {"type": ["string", "null"], "maxLength": 256, "description": "May be required."},
                "locale": {"type": ["string", "null"], "maxLength": 35, "description": "A language tag, for mails too."},
                "provider": {"type": ["string", "null"], "description": "Required if several providers allow this."}
              },
              "examples": [{"email": "ada@example.com", "name": "Ada Lovelace", "locale": "en"}]
            },
            "Token": {
              "description": "The token of a mail, with the password that is set; for `/revoke` one of a session (`mat_…`, `mrt_…`).",
              "type": "object",
              "required": ["token"],
              "properties": {
                "token": {"type": "string", "minLength": 1},
                "password": {"type": ["string", "null"], "description": "Required at `/register/verify`."}
              },
              "examples": [
                {"token": "mlt_Yp7mU0m3hJYJ8m6cPZs7C0T3b0Qk8sKQJZk3m0b2dXA", "password": "correct horse battery"}
              ]
            },
            "Code": {
              "type": "object",
              "properties": {
                "grant_type": {"type": ["string", "null"], "enum": ["authorization_code", "refresh_token", null]},
                "refresh_token": {"type": ["string", "null"], "description": "With `grant_type=refresh_token`."},
                "code": {"type": "string", "pattern": "^moc_"},
                "code_verifier": {"type": "string", "minLength": 43, "maxLength": 128},
                "device_name": {"type": ["string", "null"], "maxLength": 64}
              },
              "examples": [
                {"code": "moc_EXAMPLE", "code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}
              ]
            },
            "ForgottenPassword": {
              "type": "object",
              "required": ["email"],
              "properties": {
                "email": {"type": "string", "maxLength": 254},
                "locale": {"type": ["string", "null"], "maxLength": 35, "description": "The language of the mail."},
                "provider": {"type": ["string", "null"], "description": "Required if several providers allow this."}
              },
              "examples": [{"email": "ada@example.com", "locale": "zh-Hans"}]
            },
            "PasswordReset": {
              "type": "object",
              "required": ["token", "new_password"],
              "properties": {
                "token": {"type": "string", "pattern": "^mlt_"},
                "new_password": {"type": "string"}
              },
              "examples": [
                {"token": "mlt_Yp7mU0m3hJYJ8m6cPZs7C0T3b0Qk8sKQJZk3m0b2dXA", "new_password": "battery staple horse"}
              ]
            },
            "MailRequested": {
              "type": "object",
              "required": ["expires_in"],
              "properties": {
                "expires_in": {"type": "integer", "minimum": 0, "description": "How long the token is valid."}
              },
              "additionalProperties": false,
              "examples": [{"expires_in": 1800}]
            }
          },
          "responses": {
            "MailRequested": {
              "description": "A mail is sent, if the address may get one.",
              "headers": {"Cache-Control": {"required": true, "schema": {"const": "no-store"}}},
              "content": {"application/json": {"schema": {"$ref": "#/components/schemas/MailRequested"}}}
            }
          }
        }
        """#
}
