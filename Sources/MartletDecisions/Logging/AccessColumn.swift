package import MartletConfig

/// A field of a line, with what stands around its value.
package struct AccessColumn {
    package let field: AccessField
    /// The name, and what opens a text.
    package let before: String
    /// What closes a text, and separates the field from the next one.
    package let after: String
    /// Whether an empty value is left out with its name.
    package let omitsEmpty: Bool

    /// The fields with which lines of one second may begin.
    package static let opening: Set<AccessField> = [.time, .event, .level, .instanceID]
    /// Those that are the same for lines with one key.
    package static let shared: Set<AccessField> = [
        .event, .level, .instanceID, .route, .status, .reason, .member, .condition, .provider, .upstream, .check,
    ]
    private static let unquoted: Set<AccessField> = [
        .time, .timeMilliseconds, .status, .check, .bytesIn, .bytesOut, .duration, .upstreamStatus, .upstreamTime,
        .retries, .weight,
    ]
    private static let optional: Set<AccessField> = [
        .instanceID, .traceID, .member, .condition, .check, .tlsVersion, .userAgent, .referer, .upstreamStatus,
        .upstreamTime,
    ]
    /// The columns of a line in which every field has its name.
    package static func named(_ fields: [AccessField], _ format: AccessFormat) -> [AccessColumn] {
        let isJSON = format == .json
        return fields.map {
            let isQuoted = isJSON ? !unquoted.contains($0) : $0 == .condition || $0 == .userAgent
            let (name, quote) = ($0.rawValue, isQuoted ? "\"" : "")
            return AccessColumn(
                field: $0, before: (isJSON ? "\"\(name)\":" : "\(name)=") + quote,
                after: quote + (isJSON ? "," : " "), omitsEmpty: optional.contains($0))
        }
    }

    /// What lines as text have by default in one second, and with one key; the rest is the writer's.
    static var standardText: [AccessColumn] {
        let columns: [(AccessField, String, String)] = [
            (.time, "", " "), (.status, "", " "), (.reason, "", " "), (.member, "member=", " "),
            (.condition, "condition=\"", "\" "), (.route, "route=", " "), (.upstream, "upstream=", " "),
            (.check, "check=", " "),
        ]
        return columns.map {
            AccessColumn(field: $0, before: $1, after: $2, omitsEmpty: optional.contains($0))
        }
    }
}
