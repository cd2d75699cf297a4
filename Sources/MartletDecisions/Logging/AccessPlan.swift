package import MartletConfig
internal import MartletCore

/// What access lines have, and which are written, where that is not the default: compiled when a configuration is
/// loaded.
package final class AccessPlan: Sendable {
    /// In the order of the line.
    package let fields: [AccessField]
    /// The names of the fields as they stand in a line, with what separates them from the field before: `,"status":`.
    package let jsonNames: [[UInt8]]
    /// The same as text: ` status=`.
    package let textNames: [[UInt8]]
    package let sample: SamplePercentage
    package let logsProbes: Bool
    /// How many requests a sampled line stands for.
    package let weight: [UInt8]
    /// Whether a line has something that is only known while its request is served (``AccessNotes``).
    package let needsNotes: Bool
    /// Whether that is something of the upstream's response.
    package let notesResponses: Bool

    /// - Returns: `nil` for the default, which needs no plan.
    package init?(_ configuration: AccessLogConfiguration) {
        let isSampled = configuration.sample != .all
        guard isSampled || !configuration.logsProbes || configuration.fields != AccessField.standard else { return nil }
        var fields = configuration.fields
        // Whoever counts lines has to know what each stands for.
        if isSampled, !fields.contains(.weight) { fields.append(.weight) }
        self.fields = fields
        jsonNames = fields.map { Array(",\"\($0.rawValue)\":".utf8) }
        textNames = fields.map { Array(" \($0.rawValue)=".utf8) }
        sample = configuration.sample
        logsProbes = configuration.logsProbes
        weight = Array(AccessPlan.weight(of: configuration.sample).utf8)
        notesResponses = fields.contains(.upstreamStatus) || fields.contains(.upstreamTime)
        needsNotes = notesResponses || fields.contains(.userAgent) || fields.contains(.referer)
    }

    /// What events have: everything that is known without notes.
    package static let events: AccessPlan? = {
        var configuration = AccessLogConfiguration()
        configuration.fields = [
            .timestamp, .requestID, .client, .method, .host, .path, .subject, .sessionID, .traceID, .route,
            .status, .reason, .member, .condition, .provider, .upstream, .check, .bytesIn, .bytesOut, .duration,
            .protocolVersion,
            .listener, .retries,
        ]
        return AccessPlan(configuration)
    }()

    /// The reciprocal of a share, with at most four decimals; 0 of no share at all.
    private static func weight(of sample: SamplePercentage) -> String {
        guard sample.millionths > 0 else { return "0" }
        let tenThousandths = (SamplePercentage.all.millionths * 10_000 + sample.millionths / 2) / sample.millionths
        let (whole, rest) = tenThousandths.quotientAndRemainder(dividingBy: 10_000)
        guard rest > 0 else { return String(whole) }
        var decimals = String(String(10_000 + rest).dropFirst())
        while decimals.last == "0" { decimals.removeLast() }
        return "\(whole).\(decimals)"
    }
}

/// Where the access lines of a configuration go, and what they have.
package final class AccessLogSettings: Sendable {
    /// `nil` for the default.
    package let plan: AccessPlan?
    /// `nil` for that of all other lines.
    package let sink: (any AccessLogging)?

    package init(plan: AccessPlan?, sink: (any AccessLogging)?) {
        self.plan = plan
        self.sink = sink
    }
}
