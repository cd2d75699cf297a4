/// `log.access`: which access lines there are, what they have, and where they go.
@frozen package struct AccessLogConfiguration: Sendable, Equatable {
    /// Who renames the file.
    @frozen package enum Rotation: String, ConfigurationChoice { case external }

    package var sample = SamplePercentage.all
    /// In the order of the line.
    package var fields = AccessField.standard
    package var file: Located<FilePath>?
    package var rotation = Rotation.external
    package var logsProbes = true

    package init() {}
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
