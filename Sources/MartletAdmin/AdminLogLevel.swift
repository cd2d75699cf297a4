internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletResponder

/// `POST /log/level`: sets the log level, for a while or until a reload with another `log.level`.
package enum AdminLogLevel {
    private static let limits = JSONLimits(maximumDepth: 2, maximumBytes: 4096)
    private static let longest = Duration.seconds(7 * 86_400)

    /// How long a level may be set for, in words.
    package static let spans = "a duration of 1s to 168h, such as 10m"

    /// How long a level is to be set for; `nil` for a text that is none of ``spans``.
    package static func span(_ text: String) -> Duration? {
        guard let span = Duration(configurationText: text), span >= .seconds(1), span <= longest else { return nil }
        return span
    }

    static func respond(to request: LocalRequest, _ source: any AdminSource) -> LocalResponse {
        func invalid(_ detail: String) -> LocalResponse {
            AdminProblem.invalid(detail).response(request.requestID)
        }
        let levels = LogLevel.allCases.map(\.name).joined(separator: ", ")
        guard request.bodyBytes <= limits.maximumBytes,
            let body = (try? JSON.parse(request.body, limits: limits))?.object,
            body.members.allSatisfy({ ["level", "for"].contains($0.name) }),
            let level = LogLevel.allCases.first(where: { $0.name == body["level"]?.string })
        else { return invalid("the body must be an object with level, one of \(levels), and optionally for") }
        var length: Duration?
        if let value = body["for"] {
            guard let parsed = value.string.flatMap(span) else { return invalid("for must be \(spans)") }
            length = parsed
        }
        source.changeLogLevel(level, for: length)
        return .admin([
            "level": .string(level.name), "seconds": length.map { .integer($0.wholeSeconds) } ?? .null,
        ])
    }
}
