internal import MartletHTTP

/// A set of methods, one bit for each method that a route names; ``MethodNames`` assigns the bits.
package struct MethodSet: OptionSet, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Every method, including those that no route names.
    static let any = MethodSet(rawValue: .max)
    /// The bit of all methods that no route names.
    static let unnamed = MethodSet(rawValue: 1 << 63)
}

/// The methods that routes name, with a bit for each.
struct MethodNames: Sendable {
    /// The number of bits, less the one for all others.
    static let maximumCount = 63

    private(set) var names: [String] = []
    /// Names of up to 7 bytes, packed into one word with their length; 0 for longer ones.
    private var packed: [UInt64] = []
    private var long: [(bytes: [UInt8], bit: Int)] = []

    init() {
        // The order of `Allow`.
        for name in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] { _ = bit(of: name) }
    }

    /// The bit of a method, assigned if it has none yet.
    /// - Returns: `nil` if no bits are left.
    mutating func bit(of name: String) -> MethodSet? {
        let bytes = Array(name.utf8)
        let known = set(of: bytes.span)
        guard known == .unnamed else { return known }
        guard names.count < Self.maximumCount else { return nil }
        let bit = names.count
        names.append(name)
        if bytes.count < 8 {
            packed.append(Self.pack(bytes.span))
        } else {
            packed.append(0)
            long.append((bytes, bit))
        }
        return MethodSet(rawValue: 1 << UInt64(bit))
    }

    /// The bit of a request's method, compared byte by byte: methods are case-sensitive (RFC 9110 §9.1).
    func set(of method: Span<UInt8>) -> MethodSet {
        guard method.count < 8 else { return longSet(of: method) }
        let word = Self.pack(method)
        var bit = 0
        while bit < packed.count {
            if packed[bit] == word { return MethodSet(rawValue: 1 << UInt64(truncatingIfNeeded: bit)) }
            bit &+= 1
        }
        return .unnamed
    }

    private func longSet(of method: Span<UInt8>) -> MethodSet {
        for (bytes, bit) in long where bytes.count == method.count {
            if bytes.indices.allSatisfy({ bytes[$0] == method[$0] }) { return MethodSet(rawValue: 1 << UInt64(bit)) }
        }
        return .unnamed
    }

    /// Whether a method equals a named one except for letter case.
    func hasInOtherCase(_ method: Span<UInt8>) -> Bool {
        guard set(of: method) == .unnamed else { return false }
        return names.contains { MethodRegistry.isOtherCase(method, of: Array($0.utf8).span) }
    }

    /// A name of up to seven bytes, with its length in the last byte.
    @inline(__always)
    private static func pack(_ method: Span<UInt8>) -> UInt64 {
        method.word(at: 0) | UInt64(truncatingIfNeeded: method.count &+ 1) &<< 56
    }

    /// The names of a set, separated as an `Allow` field lists them (RFC 9110 §10.2.1).
    func list(_ set: MethodSet) -> String {
        names.indices.filter { set.rawValue >> UInt64($0) & 1 == 1 }.map { names[$0] }.joined(separator: ", ")
    }
}
