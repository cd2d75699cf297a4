internal import MartletCore
internal import MartletProvider
internal import MartletResponder

/// Why requests ended as they did: each reason has an index, which a request is recorded with; 0 is "ok".
struct ReasonCounters: ~Copyable {
    /// Far more than the members of all endpoints' request bodies and the conditions of most configurations.
    private static let maximumDetails = 1024
    private static let maximumMemberBytes = 64
    private static let maximumConditionBytes = 256

    /// A reason and what it is about: a member of the body, or a condition of the route.
    private struct DetailedReason: Hashable {
        let code: ErrorCode
        var pointer = ""
        var condition = ""
    }

    private(set) var codes: [ErrorCode] = ["ok"]
    /// The same as bytes, for the log.
    private(set) var texts: [[UInt8]] = [Array("ok".utf8)]
    /// The body member that a reason is about, for the log; empty for most.
    private(set) var members: [[UInt8]] = [[]]
    /// The same for the condition of the route that failed.
    private(set) var conditions: [[UInt8]] = [[]]
    private var counts = FlatList(repeating: 0, count: 1)
    private var indices: [ErrorCode: Int32] = [:]
    private var detailIndices: [DetailedReason: Int32] = [:]

    /// Index of a reason, assigned on first use.
    mutating func index(of code: ErrorCode) -> Int32 {
        if let known = indices[code] { return known }
        let added = append(code)
        indices[code] = added
        return added
    }

    /// Index of a failure's reason: one for each body member and each condition, so that the log can name it.
    mutating func index(of failure: Failure) -> Int32 {
        var key = DetailedReason(code: failure.reason)
        if let pointer = failure.bodyErrors.first?.pointer, pointer.utf8.count > 1 { key.pointer = pointer }
        if let condition = failure.condition { key.condition = condition }
        guard !key.pointer.isEmpty || !key.condition.isEmpty else { return index(of: failure.reason) }
        if let known = detailIndices[key] { return known }
        guard detailIndices.count < Self.maximumDetails else { return index(of: failure.reason) }
        let added = append(
            failure.reason, member: Self.text(key.pointer.utf8.dropFirst().prefix(Self.maximumMemberBytes), from: 0x21),
            condition: Self.text(key.condition.utf8.prefix(Self.maximumConditionBytes), from: 0x20))
        detailIndices[key] = added
        return added
    }

    /// The names of members and conditions are the gateway's or a provider's; the log writes them unescaped.
    private static func text(_ name: some Sequence<UInt8>, from lowest: UInt8) -> [UInt8] {
        name.map { (lowest...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C ? $0 : 0x3F }
    }

    private mutating func append(_ code: ErrorCode, member: [UInt8] = [], condition: [UInt8] = []) -> Int32 {
        let added = Int32(codes.count)
        codes.append(code)
        texts.append(Array(code.rawValue.utf8))
        members.append(member)
        conditions.append(condition)
        counts.append(0)
        return added
    }

    /// Counts one finished request.
    @inline(__always)
    mutating func count(_ reason: Int32) {
        if reason != 0 { counts[Int(reason)] &+= 1 }
    }

    /// Adds what was counted to a report.
    func add(to report: inout LoopReport) {
        for (index, code) in codes.enumerated() where counts[index] > 0 {
            report.reasons[code.rawValue, default: 0] &+= counts[index]
        }
    }
}
