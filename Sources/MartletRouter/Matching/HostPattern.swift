/// One entry of a route's `hosts`.
enum HostPattern: Sendable, Hashable {
    /// A name in lower case without a trailing dot.
    case exact([UInt8])
    /// `*.` and this suffix, in lower case: matches one or more labels before it.
    case subdomains([UInt8])
    case address(IPv6Address)

    init(_ text: String) throws(PatternError) {
        var name = text.utf8.map(\.lowercased)
        if let address = Self.address(name) {
            self = .address(address)
            return
        }
        if name.last == .dot { name.removeLast() }
        let isWild = name.starts(with: [.star, .dot])
        if isWild { name.removeFirst(2) }
        try Self.check(name, isWild: isWild)
        self = isWild ? .subdomains(name) : .exact(name)
    }

    /// An IPv6 literal with or without brackets.
    private static func address(_ name: [UInt8]) -> IPv6Address? {
        guard name.first == UInt8(ascii: "["), name.last == UInt8(ascii: "]") else { return IPv6Address(name) }
        return IPv6Address(Array(name.dropFirst().dropLast()))
    }

    private static func check(_ name: [UInt8], isWild: Bool) throws(PatternError) {
        if !isWild, name == [.star] { throw PatternError("matches any host: leave 'hosts' out") }
        if name.contains(.colon) { throw PatternError("has a port, which is not matched: leave it out") }
        if name.contains(.star) { throw PatternError("may have a '*' only as its first label, '*.example.com'") }
        if name.contains(where: { $0 >= 0x80 }) { throw PatternError("is not ASCII: write it as 'xn--…'") }
        guard !name.isEmpty, name.count <= 253 else { throw PatternError("is empty or longer than 253 bytes") }
        let labels = name.split(separator: .dot, omittingEmptySubsequences: false)
        guard labels.allSatisfy({ !$0.isEmpty && $0.count <= 63 }) else {
            throw PatternError("has a label that is empty or longer than 63 bytes")
        }
        let isName = name.allSatisfy { $0.isLetter || $0.isDigit || $0 == .dot || $0 == 0x2D || $0 == 0x5F }
        guard isName else { throw PatternError("has a character that is not allowed in a host name") }
    }

    /// Whether the host of a request matches. The direct test, for explanations; ``HostIndex`` is the fast path.
    func matches(_ authority: Span<UInt8>) -> Bool {
        guard let host = HostName(in: authority) else { return false }
        switch self {
        case .address(let address):
            return host.isBracketed && IPv6Address(authority, from: host.start, to: host.end) == address
        case .exact(let name):
            return !host.isBracketed && Self.equal(name, authority, host.start, host.end)
        case .subdomains(let suffix):
            let start = host.end - suffix.count
            return !host.isBracketed && start >= host.start + 2 && authority[start - 1] == .dot
                && Self.equal(suffix, authority, start, host.end)
        }
    }

    private static func equal(_ name: [UInt8], _ authority: Span<UInt8>, _ start: Int, _ end: Int) -> Bool {
        guard name.count == end - start else { return false }
        return name.indices.allSatisfy { name[$0] == authority[start + $0].lowercased }
    }
}
