package import MartletJSON

/// The description of the endpoints (OpenAPI 3.1), which is served and which clients are generated from.
///
/// All paths are relative to `servers`, so that they are valid for any `sessions.path`.
package enum OpenAPI {
    private static let limits = JSONLimits(maximumDepth: 32, maximumBytes: 256 * 1024)

    /// The whole document for endpoints at a path.
    package static func document(path: String) -> JSONObject {
        [
            "openapi": "3.1.0",
            "info": .object(info),
            "servers": [["url": .string(path)]],
            "paths": .object(object(loginPaths).merging(object(sessionPaths)).merging(object(wellKnownPaths))),
            "components": .object(object(requests).merging(object(responses))),
        ]
    }

    private static let info: JSONObject = [
        "title": "Martlet sign-in",
        "version": "1",
        "description": """
        Exchanges logins for sessions. Durations are in seconds, times in Unix seconds. Bodies are at most 64 KiB, \
        JSON or a form; unknown members are ignored, repeated ones are rejected. No response may be cached.
        """,
    ]

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
