internal import MartletJSON

/// The response of a collector: `ExportTraceServiceResponse` as JSON.
enum ExportResponse {
    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: 64 * 1024)

    /// How many spans the collector did not take; `nil` for what is no response of one.
    static func rejectedSpans(in body: [UInt8]) -> Int? {
        // Some collectors respond with nothing at all.
        if body.isEmpty { return 0 }
        guard let object = (try? JSON.parse(body, limits: limits))?.object else { return nil }
        guard let value = object["partialSuccess"]?.object?["rejectedSpans"] else { return 0 }
        // A 64-bit number is a text; some collectors write it as a number.
        if case .number(let number) = value { return Int(number.text).map { max($0, 0) } ?? 0 }
        return value.string.flatMap { Int($0) }.map { max($0, 0) } ?? 0
    }
}
