package import MartletCore

/// `log:`.
@frozen package struct LogConfiguration: KeyedBlock, Equatable {
    /// The format of log lines.
    @frozen package enum Format: String, ConfigurationChoice { case auto, text, json }

    /// How the access log names callers.
    @frozen package enum SubjectForm: String, ConfigurationChoice { case full, hash, off }

    package var level = LogLevel.info
    package var format = Format.auto
    package var subject = SubjectForm.full
    /// The key of the hashes; always present for ``SubjectForm/hash``.
    package var subjectKey: Secret?
    package var access = AccessLogConfiguration()

    package init() {}

    package static func == (left: LogConfiguration, right: LogConfiguration) -> Bool {
        left.level == right.level && left.format == right.format && left.subject == right.subject
            && left.access == right.access
    }

    static let keys: [ConfigurationKey<Self>] = [
        .key("level", \.level, "The minimum level that is logged."),
        .key("format", \.format, "`auto` is text on a terminal and JSON lines otherwise."),
        .key("subject", \.subject, "How access records name callers: `full`, `hash` (with `subject_key`), or `off`."),
        .block("access", \.access, default: nil, "Which access lines there are, what they have, and where they go."),
        .secret("subject_key", \.locatedKey, "The key of the hashes of `subject: hash`, at least 16 bytes."),
        .check { log, reader in
            if let key = log.subjectKey, key.count < minimumKeyBytes {
                let node = reader.node("subject_key") ?? reader.node("subject_key_file")
                reader.error(
                    .configBadValue, at: node?.location ?? reader.location,
                    "subject_key: must have at least \(minimumKeyBytes) bytes")
            }
            guard log.subject == .hash, !reader.has("subject_key"), !reader.has("subject_key_file") else { return }
            reader.error(
                .configMissingKey, at: reader.node("subject")?.location ?? reader.location,
                "subject: 'hash' requires 'subject_key_file' or 'subject_key'")
        },
    ]

    private static let minimumKeyBytes = 16

    private var locatedKey: Located<Secret>? {
        get { nil }
        set { subjectKey = newValue?.value }
    }
}

extension LogLevel: ConfigurationValue, Spelling {
    static var shape: ConfigurationGrammar.Shape { .choice(allCases.map(\.name)) }
    static func text(of level: LogLevel) -> String? { level.name }

    /// `debug`, `info`, `warning` or `error`.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        guard let level = LogLevel.allCases.first(where: { $0.name == text }) else {
            throw node.error(.configBadValue, notOneOf(LogLevel.allCases.map(\.name), text))
        }
        self = level
    }
}

/// `log.access`: which access lines there are, what they have, and where they go.
@frozen package struct AccessLogConfiguration: KeyedBlock, Equatable {
    /// Who renames the file.
    @frozen package enum Rotation: String, ConfigurationChoice { case external }

    package var sample = SamplePercentage.all
    /// In the order of the line.
    package var fields = AccessField.standard
    package var file: Located<FilePath>?
    package var rotation = Rotation.external
    package var logsProbes = true

    package init() {}

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "sample", \.sample, as: SampleShare.self,
            "How many of the lines of successful requests are written, chosen at random; rejections and 5xx always are."
        ),
        .key(
            "fields", \.fields, as: AccessFieldNames.self,
            "What a line has, in this order; `default` is what it has without this key."),
        .key("file", \.file, "Where lines go instead of standard output; SIGUSR1 opens it again."),
        .key("rotate", \.rotation, "Who renames the file: `external`, a program such as logrotate."),
        .key(
            "probes", \.logsProbes,
            "Whether successful requests for health, metrics and the pages of the admin listener have lines."),
        .check { $1.checkWritable($0.file, "file") },
    ]
}

/// `fields`: names of fields, or `default` for those of a line without the key.
private struct AccessFieldNames: Spelling {
    private static let standard = "default"
    private static let all = [standard] + AccessField.allCases.map(\.rawValue)

    static let shape = ConfigurationGrammar.Shape.list(.choice(all), nonEmpty: true)
    static func text(of fields: [AccessField]) -> String? { fields == AccessField.standard ? "[\(standard)]" : nil }
    let content: [AccessField]

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        content = try [Name](decoding: node).flatMap(\.fields)
        guard !content.isEmpty else { throw node.error(.configBadValue, "must have at least one name") }
        var known: Set<AccessField> = []
        for field in content where !known.insert(field).inserted {
            throw node.error(.configBadValue, "'\(field.rawValue)' is there twice")
        }
    }

    private struct Name: ConfigurationValue {
        let fields: [AccessField]

        init(decoding node: ConfigurationNode) throws(ConfigurationError) {
            let text = try node.text()
            if text == standard {
                fields = AccessField.standard
            } else if let field = AccessField(rawValue: text) {
                fields = [field]
            } else {
                let suggestion = Suggestion.phrase(for: text, among: all)
                throw node.error(
                    .configBadValue,
                    suggestion.isEmpty ? notOneOf(all, text) : "\(quoted(text)) is no field\(suggestion)")
            }
        }
    }
}

/// A field of an access line.
@frozen package enum AccessField: String, Sendable, CaseIterable {
    case time
    case timeMilliseconds = "time_ms"
    case timestamp
    case event, level
    case instanceID = "instance_id"
    case requestID = "request_id"
    case client, method, host, path
    case subject
    case sessionID = "session_id"
    case traceID = "trace_id"
    case route, status, reason, member, condition, provider, upstream, check
    case bytesIn = "bytes_in"
    case bytesOut = "bytes_out"
    case duration = "duration_us"
    case protocolVersion = "protocol"
    case listener
    case tlsVersion = "tls_version"
    case userAgent = "user_agent"
    case referer
    case upstreamStatus = "upstream_status"
    case upstreamTime = "upstream_us"
    case retries
    case weight

    /// The fields of a line without `fields`.
    package static let standard: [AccessField] = [
        .time, .event, .instanceID, .requestID, .client, .method, .host, .path, .subject, .sessionID, .traceID, .route,
        .status, .reason, .member, .condition, .provider, .upstream, .check, .bytesIn, .bytesOut, .duration,
    ]
}
