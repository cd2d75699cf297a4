internal import MartletCore
internal import MartletProvider
internal import MartletReports
internal import MartletResponder

/// Why requests ended as they did: each reason has an index, which a request is recorded with; 0 is "ok".
struct ReasonCounters: ~Copyable {
    /// Far more than the members of all endpoints' request bodies.
    private static let maximumMembers = 1024

    /// A reason and the body member that it is about.
    private struct MemberReason: Hashable {
        let code: ErrorCode
        let pointer: String
    }

    private(set) var codes: [ErrorCode] = ["ok"]
    /// The same as bytes, for the log.
    private(set) var texts: [[UInt8]] = [Array("ok".utf8)]
    /// The body member that a reason is about, for the log; empty for most.
    private(set) var members: [[UInt8]] = [[]]
    private var counts = FlatList(repeating: 0, count: 1)
    private var indices: [ErrorCode: Int32] = [:]
    private var memberIndices: [MemberReason: Int32] = [:]

    /// Index of a reason, assigned on first use.
    mutating func index(of code: ErrorCode) -> Int32 {
        if let known = indices[code] { return known }
        let added = append(code, member: [])
        indices[code] = added
        return added
    }

    /// Index of a failure's reason: one for each body member, so that the log can name it.
    mutating func index(of failure: Failure) -> Int32 {
        guard let pointer = failure.bodyErrors.first?.pointer, pointer.utf8.count > 1 else {
            return index(of: failure.reason)
        }
        let key = MemberReason(code: failure.reason, pointer: pointer)
        if let known = memberIndices[key] { return known }
        guard memberIndices.count < ReasonCounters.maximumMembers else { return index(of: failure.reason) }
        // Member names are the gateway's or a provider's; the log writes them unescaped.
        let member = pointer.utf8.dropFirst().prefix(64).map { byte in
            (0x21...0x7E).contains(byte) && byte != 0x22 && byte != 0x5C ? byte : 0x3F
        }
        let added = append(failure.reason, member: member)
        memberIndices[key] = added
        return added
    }

    private mutating func append(_ code: ErrorCode, member: [UInt8]) -> Int32 {
        let added = Int32(codes.count)
        codes.append(code)
        texts.append(Array(code.rawValue.utf8))
        members.append(member)
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
