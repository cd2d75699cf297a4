package import MartletJSON

/// The description of the endpoints (OpenAPI 3.1), which is served and which clients are generated from.
///
/// All paths are relative to `servers`, so that they are valid for any `sessions.path`.
package enum OpenAPI {
    private static let limits = JSONLimits(maximumDepth: 32, maximumBytes: 256 * 1024)

    /// The whole document for endpoints at a path.
    ///
    /// - Parameters:
    ///   - logins: the providers with a login; each has operations of its own, so that its members are not optional ones
    ///     of a type that fits all.
    ///   - hasForms: whether bodies are described as forms, too. Generators write a type for each media type.
    ///   - cookie: the name of the session's cookie.
    package static func document(
        path: String, logins: [Login] = Login.examples, hasForms: Bool = false, cookie: String? = nil
    ) -> JSONObject {
        let requests = cookie.map { Self.requests.replacing(standardCookie, with: $0) } ?? Self.requests
        let parts = merged([loginPaths, accountPaths, selfServicePaths, sessionPaths, wellKnownPaths])
        var components = merged([requests, bodies, responses, selfServiceComponents])
        components["responses"] = .object(writtenOut(responses: components["responses"]?.object ?? [:]))
        return [
            "openapi": "3.1.0",
            "info": .object(info),
            "servers": [["url": .string(path)]],
            "tags": .array(tags.map { ["name": .string($0.name), "description": .string($0.description)] }),
            "paths": .object(writtenOut(withLogins(parts, logins), hasForms: hasForms)),
            "components": .object(components),
        ]
    }

    /// The groups of endpoints.
    private static let tags = [
        (name: "Login", description: "From a proof of identity to a session."),
        (name: "Account", description: "The caller's account, its identities and its password."),
        (name: "Issuers", description: "Called by the services that prove identities."),
        (name: "Sessions", description: "The caller's sessions."),
        (name: "Documents", description: "Descriptions and keys for programs."),
    ]

    private static let info: JSONObject = [
        "title": "Martlet sign-in",
        "version": "1",
        "description": """
        Exchanges logins for sessions. Durations are in seconds, times in Unix seconds. Bodies are at most 64 KiB, \
        JSON or a form, which `?forms=true` describes; unknown members are ignored, repeated ones are rejected. \
        No response may be cached.
        """,
    ]

    /// The status of each response that operations list by name.
    static let statuses = [
        "Account": "200", "Identities": "200", "Nonce": "200", "NotificationOutcome": "200", "Profile": "200",
        "Proof": "200", "Session": "200", "Sessions": "200", "Tokens": "200", "Revoked": "200", "Accepted": "202",
        "MailRequested": "202", "Done": "204", "Malformed": "400", "Unauthorized": "401", "NotAllowed": "403",
        "NotFound": "404", "Conflict": "409", "TooLarge": "413", "UnsupportedMediaType": "415", "Throttled": "429",
        "Unavailable": "503",
    ]

    /// Writes out what operations abbreviate: responses by their names, and the schema of a required body.
    private static func writtenOut(_ paths: JSONObject, hasForms: Bool) -> JSONObject {
        var paths = paths
        for path in paths.members {
            guard var operations = path.value.object else { continue }
            for member in operations.members {
                guard var operation = member.value.object else { continue }
                if let names = operation["responses"]?.array {
                    let more = sessionRejections(of: operation)
                    operation["responses"] = .object(responses(names + more))
                }
                if let schema = operation["requestBody"]?.string {
                    operation["requestBody"] = .object(body(schema, hasForms: hasForms))
                } else if var body = operation["requestBody"]?.object, let content = body["content"]?.object, !hasForms
                {
                    body["content"] = .object(JSONObject(members: content.members.filter { $0.name != form }))
                    operation["requestBody"] = .object(body)
                }
                operations[member.name] = .object(operation)
            }
            paths[path.name] = .object(operations)
        }
        return paths
    }

    /// What callers with a session may get as well: 403 for a disabled account, and with a cookie for a change by another
    /// site; 400 for a second credential beside a cookie.
    private static func sessionRejections(of operation: JSONObject) -> [JSONValue] {
        let security = operation["security"]?.array ?? []
        if security.contains(["cookie": []]) { return ["Malformed", "NotAllowed"] }
        return security.contains(["session": []]) ? ["NotAllowed"] : []
    }

    private static func responses(_ names: [JSONValue]) -> JSONObject {
        var responses = JSONObject()
        for name in names.compactMap(\.string) {
            responses[statuses[name] ?? "default"] = ["$ref": .string("#/components/responses/\(name)")]
        }
        return responses
    }

    /// A required body, in JSON and perhaps as a form.
    private static func body(_ schema: String, hasForms: Bool) -> JSONObject {
        let described: JSONValue = ["schema": ["$ref": .string("#/components/schemas/\(schema)")]]
        var content: JSONObject = ["application/json": described]
        if hasForms { content[form] = described }
        return ["required": true, "content": .object(content)]
    }

    private static let standardCookie = "__Host-martlet"
    private static let form = "application/x-www-form-urlencoded"

    private static func merged(_ parts: [String]) -> JSONObject {
        parts.reduce([:]) { $0.merging(object($1)) }
    }

    /// Parses one of the parts below; a test parses them all.
    private static func object(_ text: String) -> JSONObject {
        (try? JSON.parse(Array(text.utf8), limits: limits).object) ?? [:]
    }
}

extension JSONObject {
    /// Merges both objects, recursively.
    fileprivate func merging(_ other: JSONObject) -> JSONObject {
        var merged = self
        for member in other.members {
            if let ours = merged[member.name]?.object, let theirs = member.value.object {
                merged[member.name] = .object(ours.merging(theirs))
            } else {
                merged[member.name] = member.value
            }
        }
        return merged
    }
}
