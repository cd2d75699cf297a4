package import MartletJSON

/// The description of the endpoints (OpenAPI 3.1), as it is served and as clients are generated from it.
///
/// Every path is relative to `servers`, so that it holds wherever `sessions.path` puts them.
package enum OpenAPI {
    private static let limits = JSONLimits(maximumDepth: 32, maximumBytes: 256 * 1024)

    /// The whole document for endpoints at a path.
    package static func document(path: String) -> JSONObject {
        [
            "openapi": "3.1.0",
            "info": .object(info),
            "servers": [["url": .string(path)]],
            "paths": .object(object(loginPaths).merging(object(sessionPaths)).merging(object(wellKnownPaths))),
            "components": .object(object(requests).merging(object(answers))),
        ]
    }

    private static let info: JSONObject = [
        "title": "Martlet sign-in",
        "version": "1",
        "description": """
        Logins become sessions here. Durations are seconds, instants Unix seconds. Bodies are at most 64 KiB, JSON or \
        a form alike; unknown members are ignored, repeated ones refused. No answer may be stored.
        """,
    ]

    /// A part that is written down below; a test reads them all.
    private static func object(_ text: String) -> JSONObject {
        (try? JSON.parse(Array(text.utf8), limits: limits).object) ?? [:]
    }
}

extension JSONObject {
    /// Both objects in one; members that are objects in both are merged.
    fileprivate func merging(_ other: JSONObject) -> JSONObject {
        var merged = self
        for member in other.members {
            if let mine = merged[member.name]?.object, let theirs = member.value.object {
                merged[member.name] = .object(mine.merging(theirs))
            } else {
                merged[member.name] = member.value
            }
        }
        return merged
    }
}
