package import MartletConfig
internal import MartletCore

/// What access lines have, which are written, and where they go: compiled when a configuration is loaded.
package final class AccessPlan: Sendable {
    /// Where lines go; `nil` for where all others do.
    package let sink: (any AccessLogging)?
    /// What a line has, in its order.
    private let json: [AccessColumn]
    private let text: [AccessColumn]
    private let sample: SamplePercentage
    private let logsProbes: Bool
    /// How many requests a sampled line stands for.
    private let weight: [UInt8]
    /// Whether something is to be decided or looked up before a line is written; never for the default.
    package let isSelective: Bool
    /// Whether a line has something that is only known while its request is served (``AccessNotes``).
    package let needsNotes: Bool
    /// Whether that is something of the upstream's response.
    package let notesResponses: Bool

    package init(_ configuration: AccessLogConfiguration, sink: (any AccessLogging)? = nil) {
        self.sink = sink
        sample = configuration.sample
        logsProbes = configuration.logsProbes
        weight = Array(AccessPlan.weight(of: sample).utf8)
        var fields = configuration.fields
        // Whoever counts lines has to know what each stands for.
        if sample != .all, !fields.contains(.weight) { fields.append(.weight) }
        isSelective = sample != .all || !logsProbes || fields != AccessField.standard
        json = AccessColumn.named(fields, .json)
        text = isSelective ? AccessColumn.named(fields, .text) : AccessColumn.standardText
        notesResponses = fields.contains(.upstreamStatus) || fields.contains(.upstreamTime)
        needsNotes = notesResponses || fields.contains(.userAgent) || fields.contains(.referer)
    }

    /// What lines have where a configuration says nothing about them.
    package static let standard = AccessPlan(AccessLogConfiguration())

    /// What events have: everything that is known without notes.
    package static let events: AccessPlan = {
        var configuration = AccessLogConfiguration()
        configuration.fields = [
            .timestamp, .requestID, .client, .method, .host, .path, .subject, .sessionID, .traceID, .route,
            .status, .reason, .member, .condition, .provider, .upstream, .check, .bytesIn, .bytesOut, .duration,
            .protocolVersion, .listener, .retries,
        ]
        return AccessPlan(configuration)
    }()

    /// What a line of a format has, in its order.
    package func columns(_ format: AccessFormat) -> [AccessColumn] { format == .json ? json : text }

    /// How many requests the line of one stands for; `nil` if it has no line.
    ///
    /// - Parameters:
    ///   - isRejected: the gateway has rejected the request, or could not complete it.
    ///   - isProbe: it is one for health, metrics or a page of the admin listener.
    ///   - random: any number is as likely as any other.
    package func weight(status: Int, isRejected: Bool, isProbe: Bool, random: () -> UInt64) -> [UInt8]? {
        if isRejected || status >= 500 { return AccessPlan.standard.weight }
        if isProbe, !logsProbes { return nil }
        if sample == .all { return weight }
        let number = random() % UInt64(SamplePercentage.all.millionths)
        return number < UInt64(max(sample.millionths, 0)) ? weight : nil
    }

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
